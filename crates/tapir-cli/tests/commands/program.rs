//! What the program says of itself: help, version, completions, manual.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

use crate::support::output;

fn program(arguments: &[&str]) -> Command {
    let mut program = Command::cargo_bin("tapir").unwrap();
    program.args(arguments);
    program
}

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = output(&mut program(&["--help"]));
    let list = help.split("Commands:\n").nth(1).unwrap();
    let rows = list.lines().take_while(|line| !line.is_empty());
    let name = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    rows.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).map(name).collect()
}

#[test]
fn every_command_has_help() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands.iter().filter(|command| *command != "help") {
        program(&[command, "--help"]).assert().success().stdout(contains("Usage: tapir"));
        program(&[command, "--no-such-flag"]).assert().code(2).stderr(contains("--no-such-flag"));
    }
}

#[test]
fn kernels_that_are_not_here_are_refused() {
    let mut command = program(&["tag", "play some jazz"]);
    let refused = command.env("TAPIR_KERNELS", "abacus").assert().failure();
    refused.stderr(contains("abacus").and(contains("portable"))).stdout("");
}

#[test]
fn the_version_is_short_or_says_more() {
    let number = format!("tapir {}\n", env!("CARGO_PKG_VERSION"));
    program(&["-V"]).assert().success().stdout(number.clone());
    let features =
        if cfg!(feature = "train") { "data, live, eval, serve, nats, train" } else { "features: " };
    let mut long = program(&["--version"]);
    long.env("TAPIR_KERNELS", "portable").assert().success().stdout(
        starts_with(number)
            .and(contains("commit:   "))
            .and(contains("kernels:  portable"))
            .and(contains("models:   snips"))
            .and(contains(features)),
    );
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output(&mut program(&["completions", shell]));
        for word in ["tapir", "stream", "threshold", "completions"] {
            assert!(script.contains(word), "{word} is not in the completions of {shell}");
        }
    }
    program(&["completions", "dos"]).assert().failure().stderr(contains("bash"));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    assert!(output(&mut program(&["man"])).contains(".SH NAME\ntapir"));
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("new/man1");
    program(&["man", "-o"]).arg(&pages).assert().success().stdout("");
    for command in commands().iter().filter(|command| *command != "help") {
        let page = std::fs::read_to_string(pages.join(format!("tapir-{command}.1"))).unwrap();
        assert!(
            page.contains(".SH OPTIONS") && page.contains(&format!("tapir\\-{command}")),
            "{page}"
        );
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    program(&["man", "-o"]).arg(&file).assert().failure().stderr(contains("file"));
}

#[cfg(feature = "live")]
#[test]
fn live_needs_a_terminal() {
    program(&["live"])
        .assert()
        .failure()
        .stderr(contains("needs a terminal").and(contains("tapir tag")));
}

#[test]
fn whoever_has_read_enough_may_leave() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    tapir::doctest::parts().save(&model).unwrap();
    let model = model.to_str().unwrap();
    let small = dir.path().join("small");
    for arguments in [
        &["info", model][..],
        &["info", model, "--json"],
        &["quantize", model, small.to_str().unwrap()],
        &["data", "stats", "snips"],
        &["data", "stats", "snips", "--json"],
        &["vectors", "lookup", "en_300d.tapirvec", "jazz", "unheardof"],
        &["eval", model, "snips", "--help"],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("tapir"))
            .args(arguments)
            .current_dir(dir.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let end = child.wait_with_output().unwrap();
        assert!(end.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&end.stderr));
    }
}

#[cfg(unix)]
#[test]
fn the_pipeline_of_the_examples_runs() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline.sh");
    let mut shell = Command::new("sh");
    shell.arg(script).env("TAPIR", assert_cmd::cargo::cargo_bin!("tapir"));
    let text = output(&mut shell);
    assert_eq!(text.lines().filter(|line| line.starts_with("edits: ")).count(), 5, "{text}");
    let end = text.lines().last().unwrap();
    assert!(end.starts_with("final: ") && end.ends_with(r#""B-artist","I-artist""#), "{text}");
}

#[test]
fn the_models_in_the_program_label_what_they_were_made_for() {
    let tag =
        |model, text| output(&mut program(&["tag", "--model", model, "--format", "conll", text]));
    let slots = tag("snips", "play some jazz by miles davis");
    assert!(slots.contains("miles\tB-artist\ndavis\tI-artist"), "{slots}");
    let parts = tag("pos", "She doesn't sleep.");
    assert_eq!(parts.trim(), "She\tPRON\ndoes\tAUX\nn't\tPART\nsleep\tVERB\n.\tPUNCT");
}
