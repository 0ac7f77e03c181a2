//! `tapir vectors`, as people see it.

use std::fs;

use insta::assert_snapshot;

use crate::support::printed as tapir;

#[test]
fn built_pruned_and_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("glove.txt"),
        "the 0.5 -1 2\nplay 1 0 0.25\nsong 3 2 1\nbad 1 2\n",
    )
    .unwrap();
    fs::write(folder.path().join("list.txt"), "PLAY\nsong\n").unwrap();
    let mut said = String::new();
    for arguments in [
        "build glove.txt all.tapirvec",
        "build glove.txt all.tapirvec --skip-bad --notice PDDL",
        "build glove.txt all.tapirvec --skip-bad",
        "prune all.tapirvec some.tapirvec",
        "prune all.tapirvec some.tapirvec --list list.txt --json",
        "lookup some.tapirvec Play the",
        "lookup some.tapirvec song --json",
        "lookup list.txt song",
    ] {
        let output = tapir(folder.path(), &format!("vectors {arguments}"));
        said += &["$ tapir vectors ", arguments, "\n", &output].concat();
    }
    assert_snapshot!(said);
}

#[test]
fn the_words_of_snips_are_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let tapir = |arguments| tapir(folder.path(), arguments);
    assert_snapshot!(tapir("vectors prune en_300d.tapirvec snips.tapirvec --task snips"));
    let whole = tapir("data stats snips --json");
    let pruned = tapir("data stats snips --json --vectors snips.tapirvec");
    assert_eq!(whole, pruned);
}
