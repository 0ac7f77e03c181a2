//! `tapir tag` as a user runs it, on a tiny model with random weights.

use std::io::{BufRead, BufReader, Write};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

use crate::support::{output, rounded, spawn, tapir};

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
    let text =
        output(program.args(["play some jazz by miles davis", "--steps", "--threshold", "0.52"]));
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
        let piped = output(
            program.args(dash).args(["--format", "conll"]).write_stdin("play jazz\n\nsome miles\n"),
        );
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
    program.args(["play", "--threads", "0"]).assert().failure().stderr(contains("1..=256"));
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
    let (_dir, mut child) = spawn("tag", &["-"]);
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all("play jazz\n".repeat(20_000).as_bytes());
    let end = child.wait_with_output().unwrap();
    assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
}

#[test]
fn a_line_is_answered_before_the_next_one_comes() {
    let (_dir, mut child) = spawn("tag", &["-", "--format", "json", "--threads", "3"]);
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = BufReader::new(from).lines();
    for line in ["play jazz\n", "some miles\n", "by davis\n", "play some jazz\n"] {
        to.write_all(line.as_bytes()).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["words"][0], line.split(' ').next().unwrap());
    }
    drop(to);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn a_file_without_lines_is_not_read_to_its_end() {
    let (_dir, mut child) = spawn("tag", &["-"]);
    let mut to = child.stdin.take().unwrap();
    let megabyte = vec![b'x'; 1 << 20];
    let taken = (0..64).take_while(|_| to.write_all(&megabyte).is_ok()).count();
    assert!(taken < 4, "{taken} megabytes were taken");
    let end = child.wait_with_output().unwrap();
    assert!(!end.status.success());
    assert!(String::from_utf8_lossy(&end.stderr).contains("standard input, line 1: longer than"));
}

#[test]
fn threads_change_nothing() {
    let vocabulary = ["play", "some", "jazz", "by", "miles", "davis", "who", "What's"];
    let sentence = |n: usize| {
        (0..n % 13).map(|i| vocabulary[(n * 5 + i * 3 + n / 7) % 8]).collect::<Vec<_>>().join(" ")
            + "\n"
    };
    let text: String = (0..500).map(sentence).collect();
    for format in ["table", "spans", "conll", "json"] {
        let run = |threads: &str| {
            let (_dir, mut program) = tapir("tag");
            let arguments = ["-", "--steps", "--format", format, "--threads", threads];
            output(program.args(arguments).write_stdin(text.clone()))
        };
        let one = run("1");
        assert!(one.lines().count() >= 450);
        assert!(one == run("4"), "{format}: four threads print something else than one");
    }
    let (_dir, mut program) = tapir("tag");
    let json = output(program.args(["-", "--format", "json"]).write_stdin(text.clone()));
    let mut parts = tapir::doctest::parts();
    parts.config.tokenizer = tapir::Tokenizer::Spoken;
    let model = parts.load().unwrap();
    let sentences: Vec<_> = text.lines().map(|line| tapir::Tokenizer::Spoken.words(line)).collect();
    assert_eq!(json.lines().count(), sentences.len());
    for (line, words) in json.lines().zip(&sentences) {
        let mut session = model.session();
        for word in words {
            session.push(word).unwrap();
        }
        let end = session.finish().unwrap();
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["words"], serde_json::json!(words));
        assert_eq!(answer["labels"], serde_json::json!(end.labels));
    }
}

#[test]
fn what_comes_before_an_error_is_printed() {
    for bad in ["\u{fffd}", &"x".repeat(5000)] {
        let bad =
            if bad.len() < 10 { b"\xff\xfe\n".to_vec() } else { format!("{bad}\n").into_bytes() };
        let mut text = "play jazz\n".repeat(40).into_bytes();
        text.extend(&bad);
        text.extend("play jazz\n".repeat(40).into_bytes());
        let (dir, mut program) = tapir("tag");
        let file = dir.path().join("text.txt");
        std::fs::write(&file, text).unwrap();
        let end =
            program.arg(&file).args(["--format", "spans", "--threads", "3"]).assert().failure();
        let end = end.stderr(contains("text.txt, line 41: "));
        let printed = String::from_utf8(end.get_output().stdout.clone()).unwrap();
        assert_eq!(printed.lines().filter(|line| line.is_empty()).count(), 40);
    }
}

#[test]
fn every_word_of_a_long_line_has_its_label() {
    let (_dir, mut program) = tapir("tag");
    let program = program.args(["-", "--format", "conll", "--threshold", "1"]);
    let text = output(program.write_stdin("play some jazz ".repeat(700)));
    assert_eq!(text.lines().filter(|line| line.split_once('\t').is_some()).count(), 2100);
    let (_dir, mut program) = tapir("tag");
    let program = program.arg("-").write_stdin("play ".repeat(10_001));
    program.assert().failure().stderr(contains("line 1").and(contains("10001 words")));
}

#[test]
fn files_that_are_no_text_and_models_that_are_none() {
    let (dir, mut program) = tapir("tag");
    let binary = dir.path().join("binary");
    std::fs::write(&binary, (0..=255).cycle().take(100_000).collect::<Vec<u8>>()).unwrap();
    program
        .arg(&binary)
        .assert()
        .failure()
        .stderr(contains("binary, line ").and(contains("not a text file")));
    let (dir, mut program) = tapir("tag");
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(output(program.arg(&empty)), "");
    for command in ["tag", "stream"] {
        let mut program = Command::cargo_bin("tapir").unwrap();
        program
            .arg(command)
            .arg("--model")
            .arg(dir.path().parent().unwrap())
            .write_stdin("play")
            .assert()
            .failure()
            .stderr(contains("config.json"));
        let mut program = Command::cargo_bin("tapir").unwrap();
        program
            .arg(command)
            .arg("--model")
            .arg(&empty)
            .write_stdin("play")
            .assert()
            .failure()
            .stderr(contains("not a directory"));
    }
}

#[test]
fn a_model_that_ships_is_chosen_by_its_name() {
    let run = |more: &[&str]| {
        let mut program = Command::cargo_bin("tapir").unwrap();
        output(
            program.args(["tag", "play some jazz by miles davis", "--format", "spans"]).args(more),
        )
    };
    assert_eq!(run(&[]), "intent\tPlayMusic\ngenre\tjazz\nartist\tmiles davis\n\n");
    assert_eq!(run(&["--model", "snips"]), run(&[]));
    // What the flag was called before.
    assert_eq!(run(&["--task", "pos"]), run(&["--model", "pos"]));
    let mut program = Command::cargo_bin("tapir").unwrap();
    let program = program.args(["tag", "play", "--model", "chess"]);
    program
        .assert()
        .failure()
        .stderr(contains("no such directory").and(contains("snips, snips-small, pos")));
    let mut program = Command::cargo_bin("tapir").unwrap();
    let program = program.args(["tag", "play", "--task", "snips", "--model", "runs/x"]);
    program.assert().failure().stderr(contains("cannot be used with"));
}
