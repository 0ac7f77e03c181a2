//! `tapir data`, as people see it.

use std::fs;

use insta::assert_snapshot;

use crate::support::printed as tapir;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

#[test]
fn stats_of_snips_are_the_papers() {
    assert_snapshot!(tapir(folder(&[]).path(), "data stats snips"));
}

#[test]
fn stats_for_programs() {
    let json: serde_json::Value =
        serde_json::from_str(&tapir(folder(&[]).path(), "data stats snips --json")).unwrap();
    assert_eq!(json["sentences"], serde_json::json!([13084, 700, 700]));
    assert_eq!(json["tokens_test"], 6354);
    assert_eq!(json["health"]["invalid_iob"], serde_json::json!([0, 0, 0]));
}

const TASK: &[u8] =
    b"name = 'mine'\ndata = 'corpus'\ntrain = 'train.txt'\ntest = 'test.txt'\nscheme = 'iob'\nscore = 'f1'\n\
    max_length = 3\n\n[split]\nvalid = 0.5\nseed = 7\n";

#[test]
fn stats_of_a_users_own_task() {
    let folder = folder(&[
        ("my/task.toml", TASK),
        (
            "my/corpus/train.txt",
            b"in O\nBonn B-city\n\nin O\nRome B-city\n\nto O\nNew B-city\nYork I-city\n\nhi O\n",
        ),
        ("my/corpus/test.txt", b"at O\nnoon I-time\n\na O\nb O\nc O\nd O\n\nhi O\n"),
    ]);
    assert_snapshot!(tapir(folder.path(), "data stats my/task.toml"));
}

#[test]
fn a_corpus_that_is_not_there() {
    let folder = folder(&[]);
    assert_snapshot!(tapir(folder.path(), "data stats conll-ner"));
    assert_snapshot!("unknown_task", tapir(folder.path(), "data stats nre"));
    assert_snapshot!("unknown_format", tapir(folder.path(), "data convert a b --to conll"));
}

#[test]
fn conversions_go_round() {
    let folder = folder(&[("a.bio", b"play\tO\nwestbam\tB-artist\n\nstop\tO\n")]);
    let mut said = String::new();
    for (from, to) in [
        ("a.bio", "b.jsonl"),
        ("b.jsonl", "c --to seq-in-out"),
        ("c", "d.conllu"),
        ("d.conllu", "e.arw --to arw"),
        ("e.arw", "f.tsv --to arw-tsv"),
        ("f.tsv", "g.bio --json"),
    ] {
        said += &tapir(folder.path(), &format!("data convert {from} {to}"));
    }
    assert_snapshot!(said);
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a.bio").trim_end(), read("g.bio").trim_end());
    assert_snapshot!("as_arw_tsv", read("f.tsv"));
}

#[test]
fn nothing_is_written_over_without_force() {
    let folder = folder(&[("a.bio", b"play\tO\n"), ("b.jsonl", b"precious")]);
    assert_snapshot!(tapir(folder.path(), "data convert a.bio b.jsonl"));
    assert_eq!(fs::read(folder.path().join("b.jsonl")).unwrap(), b"precious");
    tapir(folder.path(), "data convert a.bio b.jsonl --force");
    assert_eq!(
        fs::read(folder.path().join("b.jsonl")).unwrap(),
        b"{\"tokens\":[\"play\"],\"labels\":[\"O\"]}\n"
    );
}

#[test]
fn bad_lines_stop_or_are_counted() {
    let folder = folder(&[("a.txt", b"play O\n\nwestbam\n\nb\xFF O\n\nstop O\n")]);
    assert_snapshot!(tapir(folder.path(), "data convert a.txt b.jsonl"));
    assert!(!folder.path().join("b.jsonl").exists());
    assert_snapshot!("skipped", tapir(folder.path(), "data convert a.txt b.jsonl --skip-bad"));
}

#[test]
fn help_teaches() {
    assert_snapshot!(tapir(folder(&[]).path(), "data convert --help"));
}
