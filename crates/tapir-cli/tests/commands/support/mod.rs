//! What tests share.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use assert_cmd::Command;

/// A command on a tiny model with random weights, and the folder that holds the model.
pub(crate) fn tapir(command: &str) -> (tempfile::TempDir, Command) {
    let dir = tempfile::tempdir().unwrap();
    let model: PathBuf = dir.path().join("model");
    let mut parts = tapir::doctest::parts();
    parts.config.tokenizer = tapir::Tokenizer::Spoken;
    parts.save(&model).unwrap();
    let mut program = Command::cargo_bin("tapir").unwrap();
    program.args([command, "--model"]).arg(model);
    (dir, program)
}

/// The same as a process with pipes on all sides.
pub(crate) fn spawn(command: &str, arguments: &[&str]) -> (tempfile::TempDir, Child) {
    let (dir, _) = tapir(command);
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tapir"))
        .args([command, "--model"])
        .arg(dir.path().join("model"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (dir, child)
}

/// README's data of one's own: a task file, and a corpus small enough for seconds.
pub(crate) fn shop(folder: &Path) {
    let task = "name = \"shop\"\ndata = \"shop\"\ntrain = \"train.tsv\"\ntest = \"test.tsv\"\n\
                scheme = \"iob\"\nscore = \"f1\"\n[split]\nvalid = 0.1\nseed = 1\n";
    std::fs::write(folder.join("shop.toml"), task).unwrap();
    std::fs::create_dir_all(folder.join("shop")).unwrap();
    for (file, count) in [("train.tsv", 20), ("test.tsv", 4)] {
        let sentences = "two\tB-amount\npounds\tI-amount\nof\tO\napples\tB-goods\n\n\
                         some\tO\nbread\tB-goods\n\n";
        std::fs::write(folder.join("shop").join(file), sentences.repeat(count)).unwrap();
    }
}

/// What the program prints to both streams, and whether it failed, with temporary folders called
/// DIR.
pub(crate) fn printed(folder: &Path, arguments: &str) -> String {
    let output = Command::cargo_bin("tapir")
        .unwrap()
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let status = if output.status.success() { "" } else { "(failed)\n" };
    format!("{status}{text}").replace(&folder.display().to_string(), "DIR")
}

pub(crate) fn output(program: &mut Command) -> String {
    String::from_utf8(program.assert().success().get_output().stdout.clone()).unwrap()
}

/// Numbers cut to three decimals: the last bits of a float differ between sets of kernels.
pub(crate) fn rounded(text: &str) -> String {
    let mut decimals = None;
    let mut keep = |c: char| {
        decimals = match (c, decimals) {
            ('.', _) => Some(0),
            ('0'..='9', Some(n)) => Some(n + 1),
            _ => None,
        };
        decimals.is_none_or(|n| n <= 3)
    };
    text.chars().filter(|c| keep(*c)).collect()
}
