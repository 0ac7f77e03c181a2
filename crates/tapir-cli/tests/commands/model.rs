//! `tapir import`, `info` and `quantize` as a user runs them.

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

/// The files of a tiny encoder, as `transformers` saves one.
fn encoder(dir: &std::path::Path) -> std::path::PathBuf {
    let (files, dir) = (tapir::doctest::encoder(), dir.join("encoder"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("config.json"), files.config).unwrap();
    std::fs::write(dir.join("tokenizer.json"), files.tokenizer).unwrap();
    std::fs::write(dir.join("model.safetensors"), &*files.weights).unwrap();
    dir
}

#[test]
fn a_bert_becomes_a_model_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (from, model, small) =
        (encoder(dir.path()), dir.path().join("model"), dir.path().join("small"));
    tapir()
        .args(["import", "--encoder"])
        .args([&from, &model])
        .assert()
        .success()
        .stdout(contains("3 labels"));
    let info = tapir().arg("info").arg(&model).assert().success();
    info.stdout(contains("BERT, 1 layer")).stdout(contains("pieces      17"));
    tapir().arg("quantize").args([&model, &small]).assert().success();
    for model in [&model, &small] {
        tapir()
            .args(["tag", "-", "--format", "conll", "--model"])
            .arg(model)
            .write_stdin("play some zithers?\n")
            .assert()
            .success()
            .stdout(contains("zithers"));
    }
}

#[test]
fn what_an_encoder_is_not_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (from, model) = (encoder(dir.path()), dir.path().join("model"));
    let import = |more: &[&str]| {
        tapir().args(["import", "--encoder"]).args([&from, &model]).args(more).assert().failure()
    };
    import(&["--heads", "3"]).stderr(contains("--heads"));
    let json = std::fs::read_to_string(from.join("config.json")).unwrap();
    std::fs::write(from.join("config.json"), json.replace("\"bert\"", "\"roberta\"")).unwrap();
    import(&[]).stderr(contains("config.json: `model_type` is roberta, expected bert"));
    std::fs::remove_file(from.join("tokenizer.json")).unwrap();
    import(&[]).stderr(contains("tokenizer.json"));
    assert!(!model.exists(), "a failed import leaves nothing");
}
