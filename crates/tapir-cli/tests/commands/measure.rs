//! The measuring commands on a tiny model with random weights and a corpus of a few sentences.
#![allow(clippy::float_cmp, reason = "values that are read back are the same")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;
use tapir::{
    Config, ControllerConfig, Labels, Parts, ProcessorConfig, ReviserConfig, ReviserKind,
    Vocabulary,
};

const WORDS: [&str; 8] = ["play", "some", "jazz", "by", "miles", "davis", "tomorrow", "in"];
const LABELS: [&str; 4] = ["O", "B-artist", "I-artist", "B-genre"];
const SENTENCES: [(&str, &str); 4] = [
    ("play some jazz by miles davis", "O O B-genre O B-artist I-artist"),
    ("play miles davis", "O B-artist I-artist"),
    ("some jazz in berlin tomorrow", "O B-genre O O O"),
    ("jazz", "B-genre"),
];

/// A folder with a model, a corpus and its task file.
struct Bed {
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        Self::with(ReviserKind::Transformer, 0, 200, &LABELS)
    }

    fn with(kind: ReviserKind, delay: usize, max_length: usize, labels: &[&str]) -> Self {
        let bed = Self { folder: tempfile::tempdir().unwrap() };
        let config = Config {
            task: "toy".into(),
            delay,
            max_length,
            embedding_dim: 6,
            processor: Some(ProcessorConfig { layers: 1, hidden: 6, ..ProcessorConfig::default() }),
            controller: Some(ControllerConfig {
                layers: 1,
                hidden: 6,
                memory: 3,
                ..Default::default()
            }),
            reviser: Some(ReviserConfig {
                kind,
                layers: 1,
                hidden: 8,
                feed_forward: 8,
                heads: 2,
                ..ReviserConfig::default()
            }),
            ..Config::default()
        };
        let (labels, words) = (Labels::new(labels).unwrap(), Vocabulary::new(WORDS).unwrap());
        Parts::random(config, labels, words, 5).unwrap().save(bed.path("model")).unwrap();
        for split in ["train", "valid", "test"] {
            bed.corpus(split, &SENTENCES);
        }
        let task = "name = 'toy'\ndata = 'data'\ntrain = 'train'\nvalid = 'valid'\ntest = 'test'\n\
                    format = 'seq-in-out'\nscheme = 'iob'\nscore = 'f1'\n";
        fs::write(bed.path("toy.toml"), task).unwrap();
        bed
    }

    fn corpus(&self, split: &str, sentences: &[(&str, &str)]) {
        let folder = self.path("data").join(split);
        fs::create_dir_all(&folder).unwrap();
        let lines =
            |pick: fn(&(&str, &str)) -> String| sentences.iter().map(pick).collect::<String>();
        fs::write(folder.join("seq.in"), lines(|s| format!("{}\n", s.0))).unwrap();
        fs::write(folder.join("seq.out"), lines(|s| format!("{}\n", s.1))).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `tapir COMMAND model toy.toml`, in the folder.
    fn tapir(&self, command: &str) -> Command {
        let mut tapir = self.plain();
        tapir.args([command, "model", "toy.toml"]);
        tapir
    }

    fn plain(&self) -> Command {
        let mut tapir = Command::cargo_bin("tapir").unwrap();
        tapir.current_dir(self.folder.path()).env("NO_COLOR", "1").env("COLUMNS", "100");
        tapir
    }

    fn json(&self, command: &str, more: &[&str]) -> Value {
        let output = self.tapir(command).args(more).arg("--json").assert().success();
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    }

    fn fails(&self, command: &mut Command, reason: &str) {
        let before = list(self.folder.path());
        command.assert().failure().stderr(
            predicate::str::contains(reason).and(predicate::str::contains("panicked").not()),
        );
        assert_eq!(list(self.folder.path()), before, "nothing may be left behind");
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(list(&path));
        }
        files.push(path);
    }
    files.sort();
    files
}

#[test]
fn eval_prints_tables_and_json() {
    let bed = Bed::new();
    bed.tapir("eval").args(["--reference", "--by-label"]).assert().success().stdout(
        predicate::str::contains("4 sentences, 15 words")
            .and(predicate::str::contains("final output right"))
            .and(predicate::str::contains("reference: the reviser at every word"))
            .and(predicate::str::contains("R-appropriateness"))
            .and(predicate::str::contains("all (micro)")),
    );
    let results = bed.json("eval", &["--threshold", "1"]);
    assert_eq!(results["version"], 2);
    assert!(results["provenance"]["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(results["evaluation"]["incremental"]["edit_overhead"]["mean"], 0.0);
    assert_eq!(results["evaluation"]["actions"]["revise"], 0);
    assert_eq!(results["evaluation"]["words"], 15);
}

#[test]
fn a_threshold_of_nought_is_the_reference() {
    let bed = Bed::with(ReviserKind::LinearTransformer, 1, 200, &LABELS);
    let results = bed.json("eval", &["--threshold", "0", "--reference"]);
    let (own, reference) = (&results["evaluation"], &results["reference"]);
    assert_eq!(own["scores"], reference["scores"]);
    assert_eq!(own["incremental"], reference["incremental"]);
    for target in ["silver", "gold"] {
        assert_eq!(own["revisions"][target], reference["revisions"][target]);
        assert_eq!(own["revisions"][target]["recomputations"], 15, "every word, without the delay");
    }
    assert!(own["revisions"]["changing"].is_u64() && reference["revisions"]["changing"].is_null());
}

#[test]
fn eval_writes_its_record() {
    let bed = Bed::new();
    bed.tapir("eval").args(["--record", "record.json"]).assert().success();
    let record: Value =
        serde_json::from_str(&fs::read_to_string(bed.path("record.json")).unwrap()).unwrap();
    assert_eq!(record["record"]["runs"].as_array().unwrap().len(), 4);
    assert_eq!(record["record"]["runs"][0]["outputs"][5].as_array().unwrap().len(), 6);
}

#[test]
fn sweep_measures_chooses_and_writes_the_default() {
    let bed = Bed::new();
    bed.tapir("sweep")
        .args(["--plot", "plot.svg"])
        .assert()
        .success()
        .stdout(predicate::str::contains("0.7"));
    assert!(fs::read_to_string(bed.path("plot.svg")).unwrap().starts_with("<svg"));

    let before = fs::read(bed.path("model/config.json")).unwrap();
    bed.tapir("sweep").args(["--choose", "revisions=0", "--dry-run"]).assert().success();
    assert_eq!(fs::read(bed.path("model/config.json")).unwrap(), before);

    let results = bed.json("sweep", &["--choose", "revisions=0"]);
    assert_eq!(results["split"], "valid");
    assert_eq!(results["sweep"]["evaluations"].as_array().unwrap().len(), 22, "the finer list");
    assert_eq!(results["choice"]["revisions"], 0.0);
    let config = tapir::Model::open(bed.path("model")).unwrap().config().clone();
    assert_eq!(Value::from(config.threshold), results["choice"]["threshold"]);
    assert!(config.provenance.contains_key("threshold"));
}

/// A model that was calibrated says what is settled; before, it says what to do.
#[test]
fn a_model_is_calibrated_and_says_what_is_settled() {
    let bed = Bed::new();
    let tag = |settled: &str| {
        let mut tag = bed.plain();
        tag.args(["tag", "--model", "model", "--steps", "--settled", settled])
            .arg("play some jazz by");
        tag
    };
    bed.fails(&mut tag("0.95"), "tapir calibrate");
    bed.fails(bed.tapir("calibrate").args(["--split", "test"]), "too good");
    bed.fails(bed.tapir("calibrate").args(["--outside", "nowhere.txt"]), "nowhere.txt");
    bed.tapir("calibrate")
        .assert()
        .success()
        .stdout(predicate::str::contains("calibrated on valid"));
    bed.fails(&mut tag("0"), "above 0");
    let calibration = tapir::Model::open(bed.path("model")).unwrap().config().calibration.clone();
    assert!(calibration.labels.is_some() && calibration.spans.is_some());
    assert!(calibration.intent.is_none() && calibration.in_domain.is_none());
    // At the end everything is settled.
    tag("0.95").assert().success();
    let results = bed.json("eval", &[]);
    let error = results["stability"]["labels"]["error"].as_f64().unwrap();
    assert!(error < 0.2, "fitted on these very sentences, and off by {error}");
    assert_eq!(results["stability"]["settled"].as_array().unwrap().len(), 4);
    bed.fails(bed.tapir("eval").args(["--outside", "english"]), "did not learn");
}

#[test]
fn sweep_refuses_what_cannot_be_chosen() {
    let bed = Bed::new();
    bed.fails(bed.tapir("sweep").args(["--choose", "quick"]), "expected within=POINTS");
    bed.fails(bed.tapir("sweep").args(["--choose", "revisions=7"]), "outside 0 to 1");
    bed.fails(bed.tapir("sweep").args(["--choose", "within=1", "--split", "test"]), "test split");
    bed.fails(
        bed.tapir("sweep").args(["--choose", "within=1", "--thresholds", "0.5,1"]),
        "lacks threshold 0",
    );
    bed.fails(bed.tapir("sweep").args(["--thresholds", "0.5,2"]), "0 to 1");
    bed.fails(
        bed.tapir("sweep").args(["--choose", "within=1", "--thresholds", "0,0.5"]),
        "lacks threshold 1",
    );
}

#[test]
fn analyze_counts_every_step_once() {
    let bed = Bed::with(ReviserKind::Transformer, 2, 200, &LABELS);
    bed.tapir("analyze").assert().success().stdout(
        predicate::str::contains("R∩C/R")
            .and(predicate::str::contains("recomputations that changed any label"))
            .and(predicate::str::contains("definiteness")),
    );
    let policy = &bed.json("analyze", &[])["analysis"]["policy"];
    let steps: u64 =
        policy.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(steps, 15 + 4 * 2, "every word, and the delay of every sentence");
}

#[test]
fn trace_shows_text_and_sentences() {
    let bed = Bed::new();
    bed.tapir("trace").args(["--sentence", "1", "--threshold", "0"]).assert().success().stdout(
        predicate::str::contains("sentence 1\n")
            .and(predicate::str::contains("\n  6  REVISE"))
            .and(
                predicate::str::is_match("\ngold +O +O +B-genre +O +B-artist +I-artist\n").unwrap(),
            ),
    );

    let mut text = bed.plain();
    text.args(["trace", "model", "play some unheard jazz", "--svg", "t.svg", "--html", "t.html"]);
    text.assert().success().stdout(predicate::str::contains("unheard"));
    assert!(fs::read_to_string(bed.path("t.svg")).unwrap().contains("unheard"));
    assert!(fs::read_to_string(bed.path("t.html")).unwrap().starts_with("<!doctype html>"));

    bed.fails(bed.tapir("trace").args(["--sentence", "5"]), "it has 4");
    bed.fails(bed.plain().args(["trace", "model", "  "]), "no words");
}

#[test]
fn bench_compares_six_systems() {
    let bed = Bed::new();
    let bench = &bed.json("bench", &["--repetitions", "2"])["bench"];
    assert_eq!(bench["systems"].as_array().unwrap().len(), 6);
    assert_eq!(
        bench["systems"][0]["speedup"]["mean"], 1.0,
        "the reference is measured against itself"
    );
    bed.tapir("bench")
        .args(["--repetitions", "1"])
        .assert()
        .success()
        .stdout(predicate::str::contains("TAPIR int8"));
}

#[test]
fn report_joins_results() {
    let bed = Bed::new();
    for (command, more) in [
        ("eval", &["--reference", "-o", "results/eval.json"][..]),
        ("sweep", &["-o", "results/sweep.json"]),
        ("analyze", &["-o", "results/analysis.json"]),
        ("bench", &["--repetitions", "1", "-o", "results/bench.json"]),
        ("trace", &["--sentence", "1", "-o", "results/trace.json"]),
    ] {
        bed.tapir(command).args(more).assert().success();
    }
    fs::write(bed.path("notes.md"), "A note of our own.\n\nAnother <one>.").unwrap();
    bed.plain()
        .args(["report", "results", "--html", "docs/report.html", "--markdown", "docs/results.md"])
        .args(["--notes", "notes.md"])
        .assert()
        .success();
    let html = fs::read_to_string(bed.path("docs/report.html")).unwrap();
    for part in [
        "Full sentences",
        "Incremental behaviour",
        "Speed",
        "Revision quality",
        "The threshold",
        "Score against words revised",
        "step by step",
        "Another &lt;one&gt;",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(
        !html.contains("http://") || !html.replace("http://www.w3.org", "").contains("http://"),
        "self-contained"
    );
    let markdown = fs::read_to_string(bed.path("docs/results.md")).unwrap();
    assert!(markdown.contains("| toy |") && markdown.contains("A note of our own."));
}

#[test]
fn results_of_another_version_are_refused() {
    let bed = Bed::new();
    fs::write(bed.path("new.json"), r#"{"version": 3, "shape": "other"}"#).unwrap();
    fs::write(bed.path("none.json"), r#"{"a": 1}"#).unwrap();
    fs::write(bed.path("bad.json"), "{").unwrap();
    let report = |file: &str| {
        let mut command = bed.plain();
        command.args(["report", file, "--html", "report.html"]);
        command
    };
    bed.fails(&mut report("new.json"), "results version 3");
    bed.fails(&mut report("none.json"), "no `version` field");
    bed.fails(&mut report("bad.json"), "bad.json");
    bed.fails(&mut report("missing.json"), "missing.json");
    bed.fails(&mut report("data"), "no results in it");
}

#[test]
fn a_model_of_another_task_is_refused() {
    let bed = Bed::with(ReviserKind::Transformer, 0, 200, &["O", "B-city"]);
    for command in ["eval", "sweep", "analyze", "bench"] {
        bed.fails(bed.tapir(command).args(["-o", "out.json"]), "`B-artist`");
    }
}

#[test]
fn labels_that_only_the_split_has_count_as_wrong() {
    let bed = Bed::new();
    bed.corpus("test", &[("play jazz", "O B-style")]);
    bed.tapir("eval").assert().success().stderr(predicate::str::contains("B-style"));
}

#[test]
fn an_empty_split_is_refused() {
    let bed = Bed::new();
    bed.corpus("test", &[]);
    for command in ["eval", "sweep", "analyze", "bench"] {
        bed.fails(bed.tapir(command).args(["-o", "out.json"]), "");
    }
    let bed = Bed::new();
    bed.fails(bed.tapir("eval").args(["--limit", "0"]), "empty");
}

#[test]
fn sentences_beyond_the_model_s_limit_are_refused() {
    let bed = Bed::with(ReviserKind::Transformer, 1, 6, &LABELS);
    bed.fails(bed.tapir("eval").args(["-o", "out.json"]), "at most 6");
    fs::write(
        bed.path("toy.toml"),
        fs::read_to_string(bed.path("toy.toml")).unwrap() + "max_length = 5\n",
    )
    .unwrap();
    bed.tapir("eval").assert().success().stdout(predicate::str::contains("3 sentences"));
}

#[test]
fn a_missing_model_and_an_unknown_task_are_named() {
    let bed = Bed::new();
    bed.fails(bed.plain().args(["eval", "nowhere", "toy.toml"]), "nowhere");
    bed.fails(bed.plain().args(["eval", "model", "snip"]), "unknown task");
    bed.fails(bed.tapir("eval").args(["--split", "dev"]), "train, valid or test");
    bed.fails(bed.tapir("eval").args(["--threshold", "NaN"]), "0 to 1");
}
