//! What must hold for every model and every sentence.
#![allow(clippy::unwrap_used, clippy::float_cmp)] // clippy.toml allows the first in tests, not in their helpers

mod support;

use proptest::prelude::*;
use support::{cases, dataset, models, sentence};
use tapir::Mode;
use tapir_eval::{
    Analysis, Evaluation, Outputs, Record, Revisions, Setting, Summary, correction_time,
    correction_time_score, edit_overhead, edit_overhead_ahead, relative_correctness,
    relative_correctness_ahead, sweep, thresholds,
};

fn outputs() -> impl Strategy<Value = Outputs> {
    (0..10usize).prop_flat_map(|n| {
        let rows: Vec<_> = (1..=n).map(|words| prop::collection::vec(0..4u16, words)).collect();
        rows.prop_map(|rows| Outputs::new(rows).unwrap())
    })
}

fn near(a: Summary, b: Summary) -> bool {
    (a.mean - b.mean).abs() < 1e-9 && (a.std - b.std).abs() < 1e-6 && a.count == b.count
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_metric_is_between_nothing_and_all(outputs in outputs(), delay in 0..4usize) {
        for value in [
            edit_overhead_ahead(&outputs, delay),
            correction_time_score(&outputs),
            relative_correctness_ahead(&outputs, delay),
        ] {
            prop_assert!((0.0..=1.0).contains(&value), "{value}");
        }
    }

    #[test]
    fn no_edit_overhead_exactly_where_nothing_was_changed(outputs in outputs()) {
        let changed = (1..outputs.len()).any(|step| outputs.at(step)[..step] != *outputs.at(step - 1));
        prop_assert_eq!(edit_overhead(&outputs) > 0.0, changed);
        prop_assert_eq!(correction_time(&outputs).iter().any(|time| *time > 0), changed);
        if !changed {
            prop_assert!((relative_correctness(&outputs) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn outputs_survive_json(outputs in outputs()) {
        let json = serde_json::to_string(&outputs).unwrap();
        prop_assert_eq!(serde_json::from_str::<Outputs>(&json).unwrap(), outputs);
    }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn the_ends_of_a_sweep_are_the_two_passes_alone(
        model in models(),
        sentences in prop::collection::vec(sentence(), 1..6),
    ) {
        let dataset = dataset(&model, &sentences);
        let records = sweep(&model, &dataset, &thresholds(), || ()).unwrap();
        let setting = Setting::of(&model);
        let alone = |mode| Record::make(&model, &dataset, setting.mode(mode), || ()).unwrap();
        let (reference, first_pass) = (alone(Mode::Restart), alone(Mode::FirstPass));
        for i in 0..sentences.len() {
            prop_assert_eq!(&records[0].runs[i].outputs, &reference.runs[i].outputs);
            prop_assert_eq!(&records[10].runs[i].outputs, &first_pass.runs[i].outputs);
        }
        let end = Evaluation::of(&model, &dataset, &records[10]);
        prop_assert_eq!(end.incremental.edit_overhead.mean, 0.0);
        prop_assert_eq!(end.incremental.correction_time.mean, 0.0);
        prop_assert_eq!(end.incremental.relative_correctness.mean, 1.0);
        prop_assert_eq!(end.streaming.flickers, 0.0);
    }

    #[test]
    fn a_threshold_of_nought_revises_as_the_reviser_alone(
        model in models(),
        sentences in prop::collection::vec(sentence(), 1..6),
    ) {
        let dataset = dataset(&model, &sentences);
        let setting = Setting::of(&model).threshold(0.0);
        let revisions = |mode| {
            let record = Record::make(&model, &dataset, setting.mode(mode), || ()).unwrap();
            Revisions::of(&dataset, &record)
        };
        let (both, reference) = (revisions(Mode::TwoPass), revisions(Mode::Restart));
        prop_assert_eq!(&both.silver, &reference.silver);
        prop_assert_eq!(&both.gold, &reference.gold);
        prop_assert_eq!(both.silver.recomputations, dataset.words());
        // What the first pass wrote is known only where there is one; an earlier label that changed
        // is a change in any case.
        prop_assert_eq!(reference.changing, None);
        let changing = both.changing.unwrap();
        prop_assert!((both.silver.active_recomputations..=both.silver.steps).contains(&changing));
    }

    #[test]
    fn every_threshold_of_a_sweep_equals_a_run_of_its_own(
        model in models(),
        sentences in prop::collection::vec(sentence(), 1..4),
    ) {
        let dataset = dataset(&model, &sentences);
        for record in sweep(&model, &dataset, &thresholds(), || ()).unwrap() {
            let alone = Record::make(&model, &dataset, record.setting, || ()).unwrap();
            for (shared, alone) in record.runs.iter().zip(&alone.runs) {
                prop_assert_eq!(&shared.outputs, &alone.outputs);
                prop_assert_eq!(&shared.actions, &alone.actions);
                prop_assert_eq!(&shared.policy, &alone.policy);
                prop_assert_eq!(&shared.provisional, &alone.provisional);
            }
        }
    }

    #[test]
    fn the_order_of_sentences_does_not_matter(
        model in models(),
        sentences in prop::collection::vec(sentence(), 2..8),
    ) {
        let evaluate = |sentences: &[tapir_data::Sentence]| {
            let dataset = dataset(&model, sentences);
            let record = Record::make(&model, &dataset, Setting::of(&model), || ()).unwrap();
            Evaluation::of(&model, &dataset, &record)
        };
        let forward = evaluate(&sentences);
        let reversed: Vec<_> = sentences.iter().rev().cloned().collect();
        let backward = evaluate(&reversed);
        prop_assert_eq!(&forward.scores, &backward.scores);
        prop_assert_eq!(forward.actions, backward.actions);
        for (a, b) in [
            (forward.incremental.edit_overhead, backward.incremental.edit_overhead),
            (forward.incremental.correction_time, backward.incremental.correction_time),
            (forward.incremental.relative_correctness, backward.incremental.relative_correctness),
            (forward.streaming.exact_match, backward.streaming.exact_match),
            (forward.operations, backward.operations),
        ] {
            prop_assert!(near(a, b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_record_survives_json(model in models(), sentences in prop::collection::vec(sentence(), 1..4)) {
        let dataset = dataset(&model, &sentences);
        let record = Record::make(&model, &dataset, Setting::of(&model), || ()).unwrap();
        let json = serde_json::to_string(&record).unwrap();
        prop_assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn agreement_is_that_of_the_passes_alone(
        model in models(),
        sentences in prop::collection::vec(sentence(), 1..6),
    ) {
        let dataset = dataset(&model, &sentences);
        let setting = Setting::of(&model);
        let make = |mode| Record::make(&model, &dataset, setting.mode(mode), || ()).unwrap();
        let (first, second, both) = (make(Mode::FirstPass), make(Mode::Restart), make(Mode::TwoPass));
        let pairs = first.runs.iter().zip(&second.runs).map(|(a, b)| (a.outputs.last(), b.outputs.last()));
        let same = pairs.clone().filter(|(a, b)| a == b).count() as f64 / sentences.len() as f64;
        let words = pairs.flat_map(|(a, b)| a.iter().zip(b)).filter(|(a, b)| a == b).count();

        let analysis = Analysis::of(&model, &dataset, &both, || ()).unwrap();
        prop_assert_eq!(analysis.agreement.sentences, same);
        prop_assert!((analysis.agreement.words - words as f64 / dataset.words() as f64).abs() < 1e-9);
        let policy = analysis.policy;
        prop_assert_eq!(policy.revise() + policy.write(), both.runs.iter().map(|run| run.actions.len()).sum::<usize>());
    }

    #[test]
    fn revising_costs_more_than_writing(model in models(), words in 1..20usize) {
        use tapir::Action::{Revise, Write};
        let operations = tapir_eval::Operations::of(model.config(), model.labels().len());
        let cost = |action, mode| operations.sentence(&vec![action; words], mode);
        let (first, write, revise) =
            (cost(Write, Mode::FirstPass), cost(Write, Mode::TwoPass), cost(Revise, Mode::TwoPass));
        prop_assert!(first < write && write < revise);
        prop_assert!(cost(Revise, Mode::Restart) < revise, "the reference has no first pass");
    }
}
