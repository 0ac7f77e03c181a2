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

/// A reviser that is better than its first pass.
const REVISER: [(f32, f64, f64, usize); 5] = [
    (0.0, 0.911, 0.181, 100),
    (0.1, 0.907, 0.102, 40),
    (0.5, 0.906, 0.074, 21),
    (0.9, 0.849, 0.028, 8),
    (1.0, 0.814, 0.0, 0),
];

/// One that is worse.
const FIRST_PASS: [(f32, f64, f64, usize); 4] =
    [(0.0, 0.728, 0.08, 100), (0.3, 0.738, 0.05, 30), (0.6, 0.741, 0.03, 10), (1.0, 0.743, 0.0, 0)];

fn choose_from(
    rows: &[(f32, f64, f64, usize)],
    constraint: &str,
) -> Result<tapir_eval::Choice, String> {
    let constraint: Constraint =
        constraint.parse().map_err(|error: tapir_eval::Error| error.to_string())?;
    constraint.choose(&sweep(rows)).map_err(|error| error.to_string())
}

fn choose(constraint: &str) -> Result<f32, String> {
    choose_from(&REVISER, constraint).map(|choice| choice.threshold)
}

#[test]
fn near_the_better_pass_the_fewest_revisions_win() {
    assert_eq!(choose("within=0.5"), Ok(0.5));
    assert_eq!(choose("within=0.4"), Ok(0.1));
    assert_eq!(choose("within=0"), Ok(0.0));
    assert_eq!(choose("within=50"), Ok(1.0));
}

#[test]
fn the_better_pass_may_be_the_first() {
    let choice = choose_from(&FIRST_PASS, "within=0.3").unwrap();
    assert_eq!((choice.threshold, choice.below), (1.0, 0.0));
    // The reviser is 1.5 points below: half a point of it would not be safe.
    let error = choose_from(&FIRST_PASS[..3], "within=0.3").unwrap_err();
    assert!(error.contains("lacks threshold 1"), "{error}");
    let error = choose_from(&FIRST_PASS[1..], "within=0.3").unwrap_err();
    assert!(error.contains("lacks threshold 0"), "{error}");
}

#[test]
fn of_as_many_revisions_the_steadier_wins_then_the_higher_threshold() {
    let mut rows = REVISER;
    (rows[2].3, rows[2].2) = (40, 0.101);
    assert_eq!(choose_from(&rows, "within=0.5").unwrap().threshold, 0.5);
    rows[2].2 = 0.103;
    assert_eq!(choose_from(&rows, "within=0.5").unwrap().threshold, 0.1);
    rows[2].2 = 0.102;
    assert_eq!(choose_from(&rows, "within=0.5").unwrap().threshold, 0.5);
}

#[test]
fn a_choice_says_how_it_compares() {
    insta::assert_snapshot!(
        choose_from(&REVISER, "within=0.5").unwrap(),
        @"threshold 0.50: 0.50 points below the better of the two passes alone, 0.210 of the words revised, edit overhead 0.074"
    );
}

#[test]
fn under_a_limit_the_best_score_wins() {
    assert_eq!(choose("revisions=0.1"), Ok(0.9));
    assert_eq!(choose("overhead=0.11"), Ok(0.1));
    assert_eq!(choose("revisions=1"), Ok(0.0));
}

#[test]
fn limits_are_kept_before_a_score_is_near() {
    assert_eq!(choose("within=0.5,revisions=0.3"), Ok(0.5));
    // Nothing so near revises so seldom: the best of what does.
    assert_eq!(choose("within=0.1,revisions=0.5"), Ok(0.1));
    assert_eq!(choose("within=0.5,revisions=0.1"), Ok(0.9));
    // A reviser that is worse than its first pass is not asked.
    for constraint in ["within=0.3,revisions=0.12", "within=0,revisions=0.12", "revisions=0.12"] {
        assert_eq!(choose_from(&FIRST_PASS, constraint).unwrap().threshold, 1.0);
    }
}

#[test]
fn what_cannot_be_satisfied_is_said_with_what_there_is() {
    // Edits without any revision are of no model; whatever they are, nothing is under the limit.
    let edited = REVISER.map(|(threshold, score, _, revise)| (threshold, score, 0.2, revise));
    let error = choose_from(&edited, "within=0.1,overhead=0.1").unwrap_err();
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
