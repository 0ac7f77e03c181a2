//! `tapir actions` as a user runs it: a tiny generator, then a line per word.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

const PRESET: &str = r#"
task = "snips"
[words]
open = false
[generator]
hidden = 8
feed_forward = 8
heads = 2
[training.generator]
epochs = 1
batch = 8
learning_rate = 3e-3
[reviser]
kind = "transformer"
layers = 1
hidden = 8
feed_forward = 8
heads = 2
[training.reviser]
epochs = 1
batch = 8
learning_rate = 3e-3
[processor]
layers = 1
hidden = 8
[controller]
layers = 1
hidden = 8
memory = 3
[training.first_pass]
epochs = 1
batch = 8
learning_rate = 3e-3
"#;

#[test]
fn every_word_gets_an_action() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["train", "valid", "test"] {
        let split = folder.path().join("data").join(split);
        std::fs::create_dir_all(&split).unwrap();
        std::fs::write(split.join("seq.in"), "play some moby\n".repeat(20)).unwrap();
        std::fs::write(split.join("seq.out"), "O O B-artist\n".repeat(20)).unwrap();
        std::fs::write(split.join("label"), "PlayMusic\n".repeat(20)).unwrap();
    }
    std::fs::write(folder.path().join("tiny.toml"), PRESET).unwrap();
    let actions = || {
        let mut program = Command::cargo_bin("tapir").unwrap();
        program.current_dir(folder.path()).args([
            "actions",
            "tiny.toml",
            "--data",
            "data",
            "--out",
            "out",
        ]);
        program
    };
    actions().assert().success().stdout(contains("actions: out/actions.tsv"));
    let text = std::fs::read_to_string(folder.path().join("out/actions.tsv")).unwrap();
    let words: Vec<_> = text.lines().filter(|line| line.starts_with("moby\tB-artist\t")).collect();
    assert_eq!(words.len(), 20, "{text}");
    assert!(words.iter().all(|line| line.ends_with("WRITE") || line.ends_with("REVISE")), "{text}");
    actions().assert().success().stderr(contains("done before").or(contains("skipped")));

    let mut program = Command::cargo_bin("tapir").unwrap();
    program.args(["actions", "no/such"]).assert().failure().stderr(contains("no/such"));
}
