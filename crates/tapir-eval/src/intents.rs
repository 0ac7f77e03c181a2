//! How well an utterance's intent is known, and how soon.

use serde::{Deserialize, Serialize};
use tapir::Model;

use crate::f1::ratio;
use crate::{Dataset, Record, Summary};

/// Up to this many words [`IntentScores::right_after`] follows an utterance.
const FOLLOWED: usize = 12;

/// Scores of the intents of a record, of the sentences that have one. At each step a session has one
/// intent, so that the measures of labels (§5) are those of a sequence of single answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntentScores {
    /// The share of sentences with the right intent in the end.
    pub accuracy: f64,
    /// The share with the right intent and only right labels: semantic accuracy.
    pub semantic: f64,
    /// Edit overhead: the share of answers that were given in vain.
    pub edit_overhead: Summary,
    /// Correction time score: when the last answer came, 0 with the first word, 1 with the last.
    pub correction_time: Summary,
    /// Relative correctness: the share of steps that have the last answer already.
    pub relative_correctness: Summary,
    /// Of sentences that end with the right one: after how many words it is right and stays so.
    pub words_until_right: Summary,
    /// The share of all sentences in which it is right and stays so, after 1 word, after 2, …
    pub right_after: Vec<f64>,
}

impl IntentScores {
    /// None if the model knows no intents, or the sentences have none.
    pub fn of(model: &Model, dataset: &Dataset, record: &Record) -> Option<Self> {
        let intents = model.intents()?;
        dataset.examples.iter().find_map(|example| example.intent.as_ref())?;
        let delay = record.setting.delay;
        let (mut right, mut semantic) = (0, 0);
        let (mut overhead, mut time, mut correct, mut until) = (vec![], vec![], vec![], vec![]);
        let with_intent = || {
            let runs = dataset.examples.iter().zip(&record.runs);
            runs.filter(|(example, _)| example.intent.is_some())
        };
        for (example, run) in with_intent() {
            let Some(last) = run.intents.last() else { continue };
            let steps = run.intents.len();
            let changes = run.intents.windows(2).filter(|pair| pair[0] != pair[1]).count();
            // The step, from 1, from which on it is the last one.
            let since = steps - run.intents.iter().rev().take_while(|id| *id == last).count() + 1;
            overhead.push(ratio(changes, changes + 1));
            time.push(ratio(since - 1, steps - 1));
            correct.push(ratio(run.intents.iter().filter(|id| *id == last).count(), steps));
            if example.intent.as_ref().and_then(|gold| intents.id(gold)) == Some(*last) {
                right += 1;
                semantic += usize::from(example.gold == run.outputs.last());
                until.push(since);
            }
        }
        let sentences = with_intent().count();
        let longest = dataset.examples.iter().map(|example| example.words.len() + delay).max();
        let followed = FOLLOWED.min(longest.unwrap_or(0));
        let by = |words: usize| until.iter().filter(|since| **since <= words).count();
        Some(Self {
            accuracy: ratio(right, sentences),
            semantic: ratio(semantic, sentences),
            edit_overhead: Summary::of(overhead),
            correction_time: Summary::of(time),
            relative_correctness: Summary::of(correct),
            words_until_right: Summary::of(until.iter().map(|since| *since as f64)),
            right_after: (1..=followed).map(|words| ratio(by(words), sentences)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tapir::{Mode, Model};

    use super::*;
    use crate::{GoldSentence, Outputs, SentenceRun, Setting};

    fn sentence(words: usize, intent: &str, steps: &[u16]) -> (GoldSentence, SentenceRun) {
        let gold = GoldSentence {
            words: vec!["w".to_owned(); words],
            gold: vec![0; words],
            intent: Some(intent.to_owned()),
        };
        let rows: Vec<Vec<u16>> = (1..=words).map(|count| vec![0; count]).collect();
        let run = SentenceRun {
            outputs: Outputs::new(&rows).unwrap(),
            actions: Vec::new(),
            policy: Vec::new(),
            provisional: Vec::new(),
            intents: steps.to_vec(),
            nanos: Vec::new(),
        };
        (gold, run)
    }

    #[test]
    fn an_intent_is_scored_by_its_end_and_its_way() {
        let model = Model::from_parts(tapir::doctest::with_intents(tapir::doctest::parts()));
        let model = model.unwrap();
        let (examples, runs) = [
            // Right from the third of four words on, two answers in vain.
            sentence(4, "intent-1", &[0, 2, 1, 1]),
            // Wrong at once and for good.
            sentence(3, "intent-0", &[2, 2, 2]),
            // One word.
            sentence(1, "intent-2", &[2]),
            // Of an intent that the model does not know.
            sentence(2, "another", &[1, 0]),
        ]
        .into_iter()
        .unzip();
        let plain = tapir_data::Sentence::new(["w"], ["O"]);
        let mut dataset = Dataset::of(&model, &[plain]).unwrap();
        dataset.examples = examples;
        let setting = Setting { mode: Mode::TwoPass, threshold: 0.5, delay: 0 };
        let record = Record { setting, runs };
        let scores = IntentScores::of(&model, &dataset, &record).unwrap();
        assert_eq!((scores.accuracy, scores.semantic), (0.5, 0.5));
        let is_mean = |summary: Summary, values: [f64; 4]| {
            let expected = values.iter().sum::<f64>() / 4.0;
            assert!((summary.mean - expected).abs() < 1e-12, "{summary:?}: {expected}");
        };
        is_mean(scores.edit_overhead, [2.0 / 3.0, 0.0, 0.0, 0.5]);
        is_mean(scores.correction_time, [2.0 / 3.0, 0.0, 0.0, 1.0]);
        is_mean(scores.relative_correctness, [0.5, 1.0, 1.0, 0.5]);
        is_mean(scores.words_until_right, [3.0, 1.0, 3.0, 1.0]);
        assert_eq!(scores.right_after, [0.25, 0.25, 0.5, 0.5]);

        // A sentence that has none is neither right nor wrong.
        dataset.examples[1].intent = None;
        let scores = IntentScores::of(&model, &dataset, &record).unwrap();
        assert!((scores.accuracy - 2.0 / 3.0).abs() < 1e-12, "{scores:?}");
        for example in &mut dataset.examples {
            example.intent = None;
        }
        let runs = Vec::new();
        assert!(IntentScores::of(&model, &dataset, &Record { setting, runs }).is_none());
    }
}
