//! The measures of revisions against values recorded from their authors' implementation.
#![allow(clippy::unwrap_used)] // clippy.toml allows it in tests, not in their helpers

#[path = "../../tapir/tests/support/parity_folder.rs"]
mod parity_folder;

use std::{collections::BTreeMap, fs};

use serde::Deserialize;
use tapir_eval::{RevisionKinds, RevisionQuality};

#[derive(Deserialize)]
struct Parity {
    short_range: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    outputs: Vec<Vec<u16>>,
    recomputed: Vec<bool>,
    gold: Vec<u16>,
    expected: BTreeMap<String, Expected>,
}

#[derive(Deserialize)]
struct Expected {
    revision_qualities: BTreeMap<String, usize>,
    #[serde(flatten)]
    measures: BTreeMap<String, Option<f64>>,
}

impl Parity {
    fn read() -> Self {
        let file = parity_folder::with("parity", |folder| {
            let file = folder.join("revision_metrics.json");
            file.exists().then_some(file)
        });
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    }

    /// Our measures of every case beside the expected ones, against one standard.
    fn against(&self, standard: &str) -> impl Iterator<Item = (RevisionQuality, &Expected)> {
        self.cases.iter().map(move |case| {
            let outputs = case.outputs.iter().map(Vec::as_slice);
            let target = match standard {
                "silver" => case.outputs.last().unwrap(),
                _ => &case.gold,
            };
            let ours =
                RevisionQuality::with_range(outputs, &case.recomputed, target, self.short_range);
            (ours, &case.expected[standard])
        })
    }
}

/// Ours by the authors' names.
fn counts(ours: &RevisionQuality) -> BTreeMap<&'static str, usize> {
    BTreeMap::from([
        ("n_recomputations", ours.recomputations),
        ("n_active_recomputations", ours.active_recomputations),
        ("n_revisions", ours.revisions),
        ("n_effective_revisions", ours.kinds.effective),
        ("n_writes", ours.additions()),
        ("n_correct_prefixes", ours.correct_outputs),
        ("n_incorrect_prefixes", ours.incorrect_outputs()),
        ("n_total_edits", ours.edits),
    ])
}

fn shares(ours: &RevisionQuality) -> BTreeMap<&'static str, Option<f64>> {
    let complement = |share: Option<f64>| share.map(|share| 1.0 - share);
    BTreeMap::from([
        ("r_pertinence", ours.revision_pertinence()),
        ("r_pertinence_complement", complement(ours.revision_pertinence())),
        ("r_effective_pertinence", ours.effective_revision_pertinence()),
        ("a_pertinence", ours.addition_pertinence()),
        ("a_pertinence_complement", complement(ours.addition_pertinence())),
        ("r_appropriateness", ours.revision_appropriateness()),
        ("r_appropriateness_complement", complement(ours.revision_appropriateness())),
        ("r_effective_appropriateness", ours.effective_revision_appropriateness()),
        ("a_appropriateness", ours.addition_appropriateness()),
        ("a_appropriateness_complement", complement(ours.addition_appropriateness())),
        ("edit_overhead", ours.edit_overhead()),
        ("relative_correctness", ours.relative_correctness()),
    ])
}

fn kinds(ours: &RevisionKinds) -> BTreeMap<String, usize> {
    let kinds = [
        ("effective", ours.effective),
        ("defective", ours.defective),
        ("ineffective", ours.ineffective),
        ("convenient", ours.convenient),
        ("inconvenient", ours.inconvenient),
        ("recurrent", ours.recurrent),
        ("steady", ours.steady),
        ("oscillating", ours.oscillating),
        ("stable", ours.stable),
        ("isolated_edit", ours.isolated),
        ("accompanied_edits", ours.accompanied),
        ("connected_edits", ours.connected),
        ("disconnected_edits", ours.disconnected),
        ("dis_and_connected_edits", ours.connected_and_disconnected),
        ("short_range", ours.short_range),
        ("long_range", ours.long_range),
        ("short_and_long_range", ours.short_and_long_range),
        ("definite", ours.definite),
        ("temporary", ours.temporary),
        ("intermediate", ours.intermediate),
        ("final", ours.final_step),
    ];
    kinds.map(|(name, count)| (name.to_owned(), count)).into()
}

#[track_caller]
fn close(name: &str, ours: Option<f64>, theirs: Option<f64>) {
    let same = match (ours, theirs) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() < 1e-9,
        (ours, theirs) => ours == theirs,
    };
    assert!(same, "{name}: {ours:?} is not {theirs:?}");
}

#[test]
fn every_measure_of_every_sentence_is_the_authors() {
    let parity = Parity::read();
    assert!(parity_folder::are_enough(parity.cases.len(), 80));
    for standard in ["silver", "gold"] {
        for (ours, expected) in parity.against(standard) {
            let counts = counts(&ours).into_iter().map(|(name, count)| (name, Some(count as f64)));
            let measures: BTreeMap<_, _> = counts.chain(shares(&ours)).collect();
            assert_eq!(measures.len(), expected.measures.len());
            for (name, value) in measures {
                close(name, value, expected.measures[name]);
            }
            assert_eq!(kinds(&ours.kinds), expected.revision_qualities);
        }
    }
}

#[test]
fn totals_are_sums_of_counts_and_shares_are_taken_of_them() {
    let parity = Parity::read();
    for standard in ["silver", "gold"] {
        let total: RevisionQuality = parity.against(standard).map(|(ours, _)| ours).sum();
        let expected = |name: &str| -> f64 {
            parity.against(standard).filter_map(|(_, expected)| expected.measures[name]).sum()
        };
        for (name, count) in counts(&total) {
            close(name, Some(count as f64), Some(expected(name)));
        }
        for (name, count) in kinds(&total.kinds) {
            let counts = parity.against(standard).map(|(_, case)| case.revision_qualities[&name]);
            assert_eq!(count, counts.sum::<usize>(), "{name}");
        }
        let (effective, revisions) = (expected("n_effective_revisions"), expected("n_revisions"));
        close("share", total.effective_revision_pertinence(), Some(effective / revisions));
    }
}

/// The recorded cases have none of these: a revision that makes nothing better against gold.
#[test]
fn revisions_without_an_effective_one_have_no_effective_pertinence() {
    let ours = RevisionQuality::of([[1].as_slice(), &[3, 0]], &[false, true], &[2, 0]);
    assert_eq!((ours.revisions, ours.kinds.effective), (1, 0));
    assert_eq!(ours.effective_revision_pertinence(), None);
    assert_eq!(ours.effective_revision_appropriateness(), Some(0.0));
}

#[test]
fn nothing_has_no_shares() {
    let nothing = RevisionQuality::of([], &[], &[0u16; 0]);
    assert_eq!(nothing, RevisionQuality::default());
    assert!(shares(&nothing).values().all(Option::is_none));
}
