//! `tapir import`, `info` and `quantize` as a user runs them.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use predicates::str::contains;

fn tapir() -> Command {
    Command::cargo_bin("tapir").expect("the program")
}

fn state(name: &str) -> String {
    format!("{}/tests/parity/{name}.safetensors", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_state_dict_becomes_a_model_becomes_a_smaller_one() {
    let dir = tempfile::tempdir().unwrap();
    let (model, small) = (dir.path().join("model"), dir.path().join("small"));
    tapir()
        .args(["import", &state("trf_deep_ctrl2")])
        .arg(&model)
        .args(["--prefix", "param.", "--heads", "8", "--memory", "5", "--task", "parity"])
        .assert()
        .success()
        .stdout(contains("9 labels"));
    tapir().arg("quantize").arg(&model).arg(&small).assert().success().stdout(contains("MB -> "));

    let info = tapir().env("TAPIR_KERNELS", "portable").arg("info").arg(&model).assert().success();
    insta::assert_snapshot!(String::from_utf8_lossy(&info.get_output().stdout));

    let info = tapir().arg("info").arg(&small).arg("--json").assert().success();
    let json: serde_json::Value = serde_json::from_slice(&info.get_output().stdout).unwrap();
    assert_eq!(json["config"]["controller"]["layers"], 2);
    assert_eq!(json["labels"][0], "<pad>");
}

#[test]
fn nothing_is_written_over_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    let import = |force: &[&str]| {
        tapir()
            .args(["import", &state("lt_base")])
            .arg(&model)
            .args(["--prefix", "param.", "--heads", "2"])
            .args(force)
            .assert()
    };
    import(&[]).success();
    import(&[]).failure().stderr(contains("exists already")).stderr(contains("--force"));
    import(&["--force"]).success();
}

#[test]
fn errors_say_what_was_wrong() {
    let dir = tempfile::tempdir().unwrap();
    tapir()
        .args(["info", "no/such/model"])
        .assert()
        .failure()
        .stderr(contains("no such directory"));
    tapir().args(["info"]).arg(dir.path()).assert().failure().stderr(contains("config.json"));
    let out = dir.path().join("out");
    tapir()
        .args(["import", &state("lt_base")])
        .arg(&out)
        .assert()
        .failure()
        .stderr(contains("`embedding.weight` is missing"));
    assert!(!out.exists(), "a failed import leaves nothing");
    let words = dir.path().join("words.txt");
    std::fs::write(&words, "a\nb\n").unwrap();
    tapir()
        .args(["import", &state("lt_base")])
        .arg(&out)
        .args(["--prefix", "param.", "--heads", "2", "--vocab"])
        .arg(&words)
        .assert()
        .failure()
        .stderr(contains("60 word rows"));
}
