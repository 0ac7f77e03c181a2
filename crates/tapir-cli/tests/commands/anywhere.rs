//! The program alone, in a folder that has nothing of ours: all that ships is in it.

use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;

use crate::support::output;

fn tapir(folder: &Path, arguments: &str) -> Command {
    let mut program = Command::cargo_bin("tapir").unwrap();
    program.current_dir(folder).args(arguments.split(' '));
    program
}

#[test]
fn models_tasks_and_vectors_are_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let tapir = |arguments: &str| tapir(folder.path(), arguments);
    assert!(output(&mut tapir("info pos")).contains("task        ewt"));
    let said = output(&mut tapir("eval snips snips --limit 20"));
    assert!(said.starts_with("TAPIR-BERT (snips) on snips test: 20 sentences"), "{said}");
    tapir("trace pos sleep").assert().success();
    assert!(output(&mut tapir("vectors lookup en_300d.tapirvec jazz")).starts_with("jazz\trow "));
    assert!(output(&mut tapir("quantize snips half --precision f16")).starts_with("half: "));
    assert!(folder.path().join("half/en_300d.tapirvec").exists(), "a model on disk is complete");
    tapir("tag --model half play").assert().success();
    // Models that ship cannot be changed; a mistyped name is answered with those that there are.
    let fails = |arguments: &str, why: &str| {
        tapir(arguments).assert().failure().stderr(contains(why));
    };
    fails("eval snips snips --limit 1 --keep", "no such directory");
    fails("eval snip snips", "snips, snips-small, pos");
    // Where to get a corpus that does not ship.
    fails("data stats conll-pos", "https://www.clips.uantwerpen.be/conll2003/ner/");
}

#[test]
fn a_directory_comes_before_a_name() {
    let folder = tempfile::tempdir().unwrap();
    tapir::doctest::parts().save(folder.path().join("pos")).unwrap();
    assert!(output(&mut tapir(folder.path(), "info pos")).contains("task        doctest"));
    // A folder that is no model is not meant.
    std::fs::create_dir(folder.path().join("snips")).unwrap();
    assert!(output(&mut tapir(folder.path(), "info snips")).contains("task        snips"));
}

#[test]
fn a_model_without_a_file_of_vectors_takes_those_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    output(&mut tapir(folder.path(), "quantize pos pos8"));
    std::fs::remove_file(folder.path().join("pos8/en_300d.tapirvec")).unwrap();
    let tag = |model| output(tapir(folder.path(), "tag sleep --model").arg(model));
    assert_eq!(tag("pos8"), tag("pos"));
}

/// What README says about data of one's own, up to the training.
#[test]
fn data_of_ones_own_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::shop(folder.path());
    let said = output(&mut tapir(folder.path(), "data stats shop.toml"));
    assert!(said.contains("vocabulary with a vector"), "{said}");
}
