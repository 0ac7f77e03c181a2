//! `tapir train` as a process: killed with SIGKILL again and again, it ends with the same bytes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt;
use predicates::prelude::*;

const PRESET: &str = r#"
task = "snips"
shards = 2
[words]
open = false
[generator]
hidden = 16
feed_forward = 16
heads = 2
[training.generator]
epochs = 2
batch = 8
learning_rate = 3e-3
[reviser]
kind = "transformer"
layers = 1
hidden = 16
feed_forward = 16
heads = 2
[training.reviser]
epochs = 3
batch = 8
learning_rate = 3e-3
clip = 0.5
prefixes = 0.3
smoothing = 0.1
average = 0.9
[processor]
layers = 1
hidden = 16
[controller]
layers = 2
hidden = 8
memory = 3
[training.first_pass]
epochs = 3
batch = 8
learning_rate = 3e-3
[training.policy]
epochs = 2
batch = 8
learning_rate = 3e-3
"#;

/// A corpus that can be learnt, small enough for seconds.
fn corpus(folder: &Path) {
    for (split, count) in [("train", 120), ("valid", 20), ("test", 20)] {
        let (mut words, mut labels, mut intents) = (String::new(), String::new(), String::new());
        for i in 0..count {
            let artist = ["westbam", "slayer", "moby", "bach"][i % 4];
            let verb = ["play", "stop"][i / 4 % 2];
            _ = writeln!(words, "{verb} some {artist} now");
            _ = writeln!(labels, "O O B-artist O");
            _ = writeln!(intents, "PlayMusic");
        }
        std::fs::create_dir_all(folder.join(split)).unwrap();
        std::fs::write(folder.join(split).join("seq.in"), words).unwrap();
        std::fs::write(folder.join(split).join("seq.out"), labels).unwrap();
        std::fs::write(folder.join(split).join("label"), intents).unwrap();
    }
}

fn tapir(folder: &Path, settings: &[&str], out: &str) -> Command {
    let mut command = Command::cargo_bin("tapir").unwrap();
    command.current_dir(folder);
    command.args(["train", "tiny.toml", "--data", "data", "--out", out, "--checkpoint-every", "0"]);
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn prepare() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    corpus(&folder.path().join("data"));
    std::fs::write(folder.path().join("tiny.toml"), PRESET).unwrap();
    folder
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    let files =
        ["generator.safetensors", "actions.tsv", "reviser.safetensors", "first-pass.safetensors"];
    kill_again_and_again(&[], &files);
}

#[test]
fn so_does_one_whose_reviser_teaches_the_policy() {
    let settings = [
        "actions=reviser",
        "teaching={distillation = 0.5, rounds = 2, folds = 2}",
        "controller.inputs=[\"state\", \"output\"]",
    ];
    let files = ["reviser-fold-2.safetensors", "policy-1.safetensors", "policy.safetensors"];
    kill_again_and_again(&settings, &files);
}

/// Begins a run again and again, and kills it a little later each time, so that every moment of it is
/// hit and it still comes to its end; says how often it was killed.
fn kill_until_it_ends(run: &mut dyn FnMut() -> Command, pace: Duration) -> u32 {
    let start = Instant::now();
    let mut kills = 0;
    loop {
        let mut child = run().spawn().unwrap();
        let deadline = Instant::now() + pace * (2 + kills);
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return kills;
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        kills += 1;
        assert!(
            start.elapsed() < Duration::from_mins(2),
            "killed {kills} times without coming to an end"
        );
    }
}

fn kill_again_and_again(settings: &[&str], files: &[&str]) {
    let folder = prepare();
    let start = Instant::now();
    assert!(tapir(folder.path(), settings, "whole").status().unwrap().success());
    // However fast a machine is, a run that ends too soon to be killed twice is begun anew with less
    // time between kills.
    let mut pace = start.elapsed() / 20;
    let kills = loop {
        let kills = kill_until_it_ends(&mut || tapir(folder.path(), settings, "killed"), pace);
        if kills >= 2 {
            break kills;
        }
        std::fs::remove_dir_all(folder.path().join("killed")).unwrap();
        pace /= 2;
    };
    for file in files {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
        assert!(read("whole") == read("killed"), "{file} differs after {kills} kills");
    }
    println!("{kills} kills");
}

#[test]
fn bad_input_is_refused_before_any_time_is_spent() {
    let folder = prepare();
    let refuse = |arguments: &[&str], message: &str| {
        let mut command = assert_cmd::Command::cargo_bin("tapir").unwrap();
        command.current_dir(folder.path()).arg("train").args(arguments);
        command.assert().failure().stderr(predicate::str::contains(message));
    };
    refuse(&["tiny.toml", "--set", "reviser.haeds=2"], "haeds");
    refuse(&["tiny.toml", "--set", "reviser.heads=3"], "must divide");
    refuse(&["tiny.toml", "--data", "nowhere"], "no corpus for the task snips");
    refuse(&["nothing"], "no such preset");
    refuse(
        &["small/snips", "--data", "data", "--set", "words.vectors=none.tapirvec"],
        "none.tapirvec",
    );
}

#[test]
fn a_checkpoint_of_another_preset_is_refused_and_a_broken_one_is_named() {
    let folder = prepare();
    let out = folder.path().join("out");
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(out.join("generator.checkpoint"), b"nonsense").unwrap();
    let mut command = assert_cmd::Command::cargo_bin("tapir").unwrap();
    command.current_dir(folder.path()).args([
        "train",
        "tiny.toml",
        "--data",
        "data",
        "--out",
        "out",
    ]);
    command
        .assert()
        .failure()
        .stderr(predicate::str::contains("generator.checkpoint: not a whole checkpoint"));
}

/// README's "Train on your own data": nothing but the program and two files in the folder. The
/// preset's word vectors and, without a task of one's own, the corpus are in the program.
#[test]
fn a_preset_that_ships_trains_in_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    crate::support::shop(folder.path());
    let tiny = [
        "generator.hidden=8",
        "generator.feed_forward=8",
        "generator.heads=2",
        "reviser.layers=1",
        "reviser.hidden=8",
        "reviser.feed_forward=8",
        "reviser.heads=2",
        "processor.hidden=8",
        "processor.projection=8",
        "controller.hidden=8",
        "training.generator.epochs=1",
        "training.reviser.epochs=1",
        "training.first_pass.epochs=1",
    ];
    let tapir = |arguments: &str| {
        let mut command = assert_cmd::Command::cargo_bin("tapir").unwrap();
        command.current_dir(folder.path()).args(arguments.split(' '));
        command
    };
    let mut train = tapir("train small/snips --set task=shop.toml --out runs/shop");
    train.args(tiny.iter().flat_map(|setting| ["--set", setting])).assert().success();
    tapir("eval runs/shop/model shop.toml --reference").assert().success();
    tapir("tag --model runs/shop/model apples").assert().success();
    // The corpus comes before any time is spent, so a wrong setting behind it shows that it is
    // there.
    let mut snips = tapir("train small/snips --set words.vectors=none.tapirvec");
    snips.assert().failure().stderr(predicate::str::contains("none.tapirvec: no such file"));
}

/// Rows of `metrics.jsonl` as stage and epoch.
fn epochs(run: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let row = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{} {}", row["stage"].as_str().unwrap(), row["epoch"])
    };
    text.lines().map(row).collect()
}

/// Files larger than a few kilobytes cannot be written, as on a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_cleanly_and_the_next_one_goes_on() {
    let folder = prepare();
    assert!(tapir(folder.path(), &[], "whole").status().unwrap().success());
    let run = |limit: &str| {
        let binary = assert_cmd::cargo::cargo_bin("tapir");
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        let mut command = assert_cmd::Command::new("sh");
        command.current_dir(folder.path()).args(["-c", &script]).arg(binary);
        command.args([
            "train",
            "tiny.toml",
            "--data",
            "data",
            "--out",
            "full",
            "--checkpoint-every",
            "0",
        ]);
        command.assert()
    };
    // In blocks of 512 bytes: enough for the generator's checkpoints, not for those of the reviser.
    let size =
        |file: &str| std::fs::metadata(folder.path().join("whole").join(file)).unwrap().len();
    let generator = size("generator.safetensors") * 3 / 512 + 24;
    let failed = run(&generator.to_string()).failure();
    let message = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(message.contains("reviser.") && message.contains("too large"), "{message}");
    let left: Vec<String> = std::fs::read_dir(folder.path().join("full"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(left.iter().any(|name| name == "generator.safetensors"), "{left:?}");
    assert!(!left.iter().any(|name| name.contains("tmp") || name.contains("aside")), "{left:?}");
    run("unlimited").success();
    for file in ["reviser.safetensors", "first-pass.safetensors"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
        assert!(read("whole") == read("full"), "{file} differs");
    }
    assert_eq!(epochs(&folder.path().join("whole")), epochs(&folder.path().join("full")));
}

/// The trials of a search, those of earlier calls included.
fn tune(folder: &Path, trials: &str, epochs: &str) -> Vec<serde_json::Value> {
    let mut command = assert_cmd::Command::cargo_bin("tapir").unwrap();
    command.current_dir(folder);
    command.args(["tune", "tiny.toml", "--data", "data", "--out", "tuned", "--json"]);
    // The paper's sizes are too large for a test; its other dimensions are searched.
    command.args(["--trials", trials, "--epochs", epochs]);
    command.args(["--only", "clip", "--only", "memory", "--only", "batch"]);
    let output = command.assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn tuning_searches_and_goes_on_where_it_was_stopped() {
    let folder = prepare();
    let mut nothing = assert_cmd::Command::cargo_bin("tapir").unwrap();
    nothing.current_dir(folder.path()).args(["tune", "tiny.toml", "--data", "data"]);
    let error = nothing.args(["--only", "nothing"]).assert().failure().get_output().stderr.clone();
    let error = String::from_utf8(error).unwrap();
    assert!(error.contains("expected one of reviser.layers, training.reviser.clip"), "{error}");
    let tune = |trials: &str| tune(folder.path(), trials, "1");
    let first = tune("2");
    assert_eq!(first.len(), 4, "two trials of the reviser, two of the first pass: {first:?}");
    let second = tune("3");
    assert_eq!(second.len(), 6);
    assert_eq!(second[..2], first[..2], "what was tried is not tried again");
    assert!(second.iter().all(|trial| trial["score"].as_f64().is_some_and(|score| score >= 0.0)));
    let best = std::fs::read_to_string(folder.path().join("tuned/best.toml")).unwrap();
    assert!(best.contains("[training.reviser]"), "{best}");
    let mut train = Command::cargo_bin("tapir").unwrap();
    train.current_dir(folder.path()).args([
        "train",
        "tuned/best.toml",
        "--data",
        "data",
        "--out",
        "best",
    ]);
    assert!(train.stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
}

#[test]
fn tuning_gives_up_a_trial_that_is_worse_than_most() {
    let folder = prepare();
    tune(folder.path(), "4", "3");
    // The four trials are made out to have been better than anything can be, so that the fifth is
    // worse.
    let journal = folder.path().join("tuned/reviser.trials.jsonl");
    let mut better = String::new();
    for line in std::fs::read_to_string(&journal).unwrap().lines() {
        let mut trial: serde_json::Value = serde_json::from_str(line).unwrap();
        for value in trial["intermediate_values"].as_array_mut().unwrap() {
            value[1] = 101.0.into();
        }
        _ = writeln!(better, "{trial}");
    }
    std::fs::write(&journal, better).unwrap();
    let trials = tune(folder.path(), "5", "3");
    let (fourth, fifth) = (&trials[3], &trials[4]);
    assert_eq!((&fourth["stage"], &fourth["number"]), (&"reviser".into(), &4.into()));
    assert!(fourth["score"].is_f64() && fourth["epochs"] == 3, "{fourth}");
    // Two epochs are waited for.
    assert!(fifth["score"].is_null() && fifth["epochs"] == 2, "{fifth}");
}
