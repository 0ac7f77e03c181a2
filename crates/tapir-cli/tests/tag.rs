//! `tapir tag` and `tapir stream` as a user runs them, on a tiny model with random weights.
#![allow(clippy::unwrap_used)]
#![allow(clippy::format_push_string)] // messages are built line by line

use std::path::PathBuf;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

fn tapir(command: &str) -> (tempfile::TempDir, Command) {
    let dir = tempfile::tempdir().unwrap();
    let model: PathBuf = dir.path().join("model");
    let mut parts = tapir::doctest::parts();
    parts.config.tokenizer = tapir::Tokenizer::Spoken;
    parts.save(&model).unwrap();
    let mut program = Command::cargo_bin("tapir").unwrap();
    program.args([command, "--model"]).arg(model);
    (dir, program)
}

fn output(program: &mut Command) -> String {
    String::from_utf8(program.assert().success().get_output().stdout.clone()).unwrap()
}

/// Numbers cut to three decimals: the last bits of a float differ between sets of kernels.
fn rounded(text: &str) -> String {
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

#[test]
fn every_format() {
    for format in ["table", "spans", "conll", "json"] {
        let (_dir, mut program) = tapir("tag");
        let text = output(program.args(["Play some JAZZ, by Miles Davis!", "--format", format]));
        insta::assert_snapshot!(format!("tag_{format}"), rounded(&text));
    }
}

#[test]
fn steps_show_every_word() {
    let (_dir, mut program) = tapir("tag");
    let text = output(program.args(["play some jazz by miles davis", "--steps", "--threshold", "0.52"]));
    insta::assert_snapshot!(rounded(&text));
}

#[test]
fn text_comes_from_files_and_pipes() {
    let (dir, mut program) = tapir("tag");
    let file = dir.path().join("text.txt");
    std::fs::write(&file, "play jazz\r\n\nsome miles").unwrap();
    let from_file = output(program.arg(&file).args(["--format", "conll"]));
    assert_eq!(from_file.lines().filter(|line| !line.is_empty()).count(), 4);
    for dash in [&["-"][..], &[]] {
        let (_dir, mut program) = tapir("tag");
        let piped =
            output(program.args(dash).args(["--format", "conll"]).write_stdin("play jazz\n\nsome miles\n"));
        assert_eq!(piped, from_file);
    }
    let (_dir, mut program) = tapir("tag");
    let kept = output(program.args(["Play, JAZZ", "--pretokenized", "--format", "conll"]));
    assert!(kept.starts_with("Play,\t"));
    let (_dir, mut program) = tapir("tag");
    assert_eq!(output(program.arg("-").write_stdin("")), "");
}

#[test]
fn bad_text_is_named() {
    let (_dir, mut program) = tapir("tag");
    program
        .arg("-")
        .write_stdin(b"play\n\xff\xfe\n".to_vec())
        .assert()
        .failure()
        .stderr(contains("line 2: not a text"));
    let (_dir, mut program) = tapir("tag");
    program
        .arg("-")
        .write_stdin(vec![b'x'; 3 << 20])
        .assert()
        .failure()
        .stderr(contains("line 1: longer than"));
    let (_dir, mut program) = tapir("tag");
    program
        .arg("-")
        .write_stdin("x".repeat(5000))
        .assert()
        .failure()
        .stderr(contains("line 1").and(contains("5000 bytes")));
    let (_dir, mut program) = tapir("tag");
    program.args(["play", "--threshold", "2"]).assert().failure().stderr(contains("0 to 1"));
    Command::cargo_bin("tapir")
        .unwrap()
        .args(["tag", "play", "--model", "no/such"])
        .assert()
        .failure()
        .stderr(contains("no such directory"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (dir, _) = tapir("tag");
    let model = dir.path().join("model");
    let program = assert_cmd::cargo::cargo_bin!("tapir");
    let mut child = std::process::Command::new(program)
        .args(["tag", "-", "--model"])
        .arg(model)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let _ =
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), "play jazz\n".repeat(20_000).as_bytes());
    let end = child.wait_with_output().unwrap();
    assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
}

#[test]
fn a_stream_answers_every_line() {
    let (_dir, mut program) = tapir("stream");
    let lines = [
        r#"{"push": "play"}"#,
        r#"{"update": ["play", "jazz"]}"#,
        r#"{"session": "b", "push": "some"}"#,
        r#"{"revoke": 1}"#,
        r#"{"revoke": 9}"#,
        "nonsense",
        "",
        r#"{"finish": true}"#,
        r#"{"push": "more"}"#,
        r#"{"reset": true}"#,
    ];
    let text = output(program.write_stdin(lines.join("\n")));
    insta::assert_snapshot!(rounded(&text));
}

#[test]
fn a_thousand_interleaved_sessions_are_as_fresh_ones() {
    let words = ["play", "some", "jazz", "by", "miles", "davis"];
    let mut input = String::new();
    for round in 0..6 {
        for id in 0..1000 {
            let word = words[(id * 7 + round * 5) % 6];
            if round == 3 {
                input += &format!(
                    "{{\"session\": \"{id}\", \"push\": \"wrong\"}}\n{{\"session\": \"{id}\", \"revoke\": 1}}\n"
                );
            }
            input += &format!("{{\"session\": \"{id}\", \"push\": \"{word}\"}}\n");
        }
    }
    for id in 0..1000 {
        input += &format!("{{\"session\": \"{id}\", \"finish\": true}}\n");
    }
    let (_dir, mut program) = tapir("stream");
    let text = output(program.write_stdin(input));
    let model = tapir::doctest::parts().load().unwrap();
    let answers: Vec<tapir::protocol::Response> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (id, end) in answers.iter().rev().take(1000).rev().enumerate() {
        let mut session = model.session();
        for round in 0..6 {
            session.push(words[(id * 7 + round * 5) % 6]).unwrap();
        }
        assert_eq!(end.labels.as_ref(), Some(&session.finish().unwrap().labels), "session {id}");
    }
}
