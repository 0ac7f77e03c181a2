//! The choice of a threshold under a constraint.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // clippy.toml allows the first in tests, not in their helpers

use tapir_eval::{Constraint, Dataset, Evaluation, Record, Setting, Sweep};

/// Sweeps of a given score, edit overhead and share of revisions by threshold.
fn sweep(rows: &[(f32, f64, f64, usize)]) -> Sweep {
    let model = tapir::Model::from_parts(tapir::doctest::parts()).unwrap();
    let sentence = tapir_data::Sentence::new(["play"], ["O"]);
    let dataset = Dataset::of(&model, &[sentence]).unwrap();
    let record = Record::make(&model, &dataset, Setting::of(&model), || ()).unwrap();
    let blank = Evaluation::of(&model, &dataset, &record);
    let row = |&(threshold, score, overhead, revise): &(f32, f64, f64, usize)| {
        let mut evaluation = blank.clone();
        evaluation.setting.threshold = threshold;
        evaluation.scores.micro.f1 = score;
        evaluation.incremental.edit_overhead.mean = overhead;
        (evaluation.actions.revise, evaluation.actions.write) = (revise, 100 - revise);
        evaluation
    };
    Sweep { evaluations: rows.iter().map(row).collect() }
}

fn choose(constraint: &str) -> Result<f32, String> {
    let sweep = sweep(&[
        (0.0, 0.911, 0.181, 100),
        (0.1, 0.907, 0.102, 40),
        (0.5, 0.906, 0.074, 21),
        (0.9, 0.849, 0.028, 8),
        (1.0, 0.814, 0.0, 0),
    ]);
    let constraint: Constraint =
        constraint.parse().map_err(|error: tapir_eval::Error| error.to_string())?;
    constraint.choose(&sweep).map(|choice| choice.threshold).map_err(|error| error.to_string())
}

#[test]
fn near_the_reviser_the_steadiest_wins() {
    assert_eq!(choose("within=0.5"), Ok(0.5));
    assert_eq!(choose("within=0.4"), Ok(0.1));
    assert_eq!(choose("within=0"), Ok(0.0));
    assert_eq!(choose("within=50"), Ok(1.0));
}

#[test]
fn under_a_limit_the_best_score_wins() {
    assert_eq!(choose("revisions=0.1"), Ok(0.9));
    assert_eq!(choose("overhead=0.11"), Ok(0.1));
    assert_eq!(choose("revisions=1"), Ok(0.0));
}

#[test]
fn what_cannot_be_satisfied_is_said_with_what_there_is() {
    let error = choose("within=0.1,revisions=0.5").unwrap_err();
    assert!(
        error.contains("no threshold satisfies") && error.contains("0.9: 6.20 below"),
        "{error}"
    );
    for (bad, reason) in [
        ("", "has no `=`"),
        ("within", "has no `=`"),
        ("within=x", "number"),
        ("speed=1", "not a constraint"),
    ] {
        let error = choose(bad).unwrap_err();
        assert!(error.contains(reason), "{bad}: {error}");
    }
}
