//! The metrics against values recorded from the authors' implementation and from seqeval.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // clippy.toml allows the first in tests, not in their helpers

#[path = "../../tapir/tests/support/parity_folder.rs"]
mod parity_folder;

use std::fs;

use serde::{Deserialize, de::DeserializeOwned};
use tapir_eval::{
    Outputs, Scores, Summary, correction_time, correction_time_score, edit_overhead,
    edit_overhead_ahead, relative_correctness, relative_correctness_ahead,
};

fn read<T: DeserializeOwned>(name: &str) -> T {
    let file = parity_folder::with("parity", |folder| {
        let file = folder.join(name);
        file.exists().then_some(file)
    });
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[track_caller]
fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() < 1e-9, "{ours} is not {theirs}");
}

#[derive(Deserialize)]
struct Metrics {
    mean: Expected,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    partial_outputs: Outputs,
    correction_time: Vec<usize>,
    #[serde(flatten)]
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    edit_overhead: f64,
    edit_overhead_delay1: f64,
    edit_overhead_delay2: f64,
    correction_time_score: f64,
    relative_correctness: f64,
    relative_correctness_delay1: f64,
    relative_correctness_delay2: f64,
}

impl Expected {
    fn check(&self, metric: impl Fn(&dyn Fn(&Outputs) -> f64) -> f64) {
        close(metric(&edit_overhead), self.edit_overhead);
        close(metric(&|o| edit_overhead_ahead(o, 1)), self.edit_overhead_delay1);
        close(metric(&|o| edit_overhead_ahead(o, 2)), self.edit_overhead_delay2);
        close(metric(&correction_time_score), self.correction_time_score);
        close(metric(&relative_correctness), self.relative_correctness);
        close(metric(&|o| relative_correctness_ahead(o, 1)), self.relative_correctness_delay1);
        close(metric(&|o| relative_correctness_ahead(o, 2)), self.relative_correctness_delay2);
    }
}

#[test]
fn incremental_metrics_are_the_authors() {
    let metrics: Metrics = read("incremental_metrics.json");
    assert!(parity_folder::are_enough(metrics.cases.len(), 100));
    for case in &metrics.cases {
        case.expected.check(|metric| metric(&case.partial_outputs));
        assert_eq!(correction_time(&case.partial_outputs), case.correction_time);
    }
    metrics
        .mean
        .check(|metric| Summary::of(metrics.cases.iter().map(|c| metric(&c.partial_outputs))).mean);
}

#[test]
fn precision_recall_and_f1_are_those_of_seqeval() {
    #[derive(Deserialize)]
    struct Case {
        gold: Vec<Vec<String>>,
        predicted: Vec<Vec<String>>,
        precision: f64,
        recall: f64,
        f1: f64,
    }
    let cases: Vec<Case> = read("seqeval_f1.json");
    assert!(parity_folder::are_enough(cases.len(), 11));
    for case in cases {
        let micro = Scores::of(case.gold.iter().zip(&case.predicted), tapir::Scheme::Iob).micro;
        close(micro.precision, case.precision);
        close(micro.recall, case.recall);
        close(micro.f1, case.f1);
    }
}
