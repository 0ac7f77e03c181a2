//! All metrics of one record.

use serde::{Deserialize, Serialize};
use tapir::{Action, Model, Vocabulary};

use crate::f1::ratio;
use crate::{
    Dataset, IntentScores, Operations, Percentiles, Record, Revisions, Scores, SentenceRun,
    Setting, Streaming, Summary, correction_time_score, edit_overhead, edit_overhead_ahead,
    relative_correctness, relative_correctness_ahead,
};

/// The look-aheads that the paper reports for the reference model.
const LOOK_AHEADS: [usize; 2] = [1, 2];

/// The paper's incremental metrics, means and deviations over sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Incremental {
    /// Edit overhead: lower is better.
    pub edit_overhead: Summary,
    /// Correction time score: lower is better.
    pub correction_time: Summary,
    /// Relative correctness: higher is better.
    pub relative_correctness: Summary,
    /// The versions with a look-ahead of 1 and 2, from the undelayed outputs; none for a model that
    /// is delayed itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Ahead>,
}

/// Metrics of an output that is held back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// By how many words.
    pub delay: usize,
    /// EOΔ
    pub edit_overhead: Summary,
    /// RCΔ
    pub relative_correctness: Summary,
}

impl Incremental {
    /// Summarises the metrics of some runs.
    pub fn of<'a>(runs: impl Iterator<Item = &'a SentenceRun> + Clone, delayed: bool) -> Self {
        let ahead = |delay| Ahead {
            delay,
            edit_overhead: Summary::of(
                runs.clone().map(|run| edit_overhead_ahead(&run.outputs, delay)),
            ),
            relative_correctness: Summary::of(
                runs.clone().map(|run| relative_correctness_ahead(&run.outputs, delay)),
            ),
        };
        Self {
            edit_overhead: Summary::of(runs.clone().map(|run| edit_overhead(&run.outputs))),
            correction_time: Summary::of(
                runs.clone().map(|run| correction_time_score(&run.outputs)),
            ),
            relative_correctness: Summary::of(
                runs.clone().map(|run| relative_correctness(&run.outputs)),
            ),
            ahead: if delayed { Vec::new() } else { LOOK_AHEADS.map(ahead).to_vec() },
        }
    }
}

/// How often each action was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actions {
    /// WRITE
    pub write: usize,
    /// REVISE
    pub revise: usize,
}

impl Actions {
    /// Counts actions.
    pub fn of<'a>(actions: impl IntoIterator<Item = &'a Action>) -> Self {
        let mut counts = Self::default();
        for action in actions {
            match action {
                Action::Write => counts.write += 1,
                Action::Revise => counts.revise += 1,
            }
        }
        counts
    }

    /// The share of REVISE.
    pub fn revise_share(self) -> f64 {
        ratio(self.revise, self.write + self.revise)
    }
}

/// Words that a model has neither a trained row nor a vector for, such as names never seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnknownWords {
    /// How many there are.
    pub words: usize,
    /// The share of them that has the right label in the end.
    pub accuracy: f64,
}

impl UnknownWords {
    fn of(model: &Model, dataset: &Dataset, record: &Record) -> Option<Self> {
        if model.config().embedding_dim == 0 {
            return None;
        }
        let (mut words, mut right) = (0, 0);
        for (example, run) in dataset.examples.iter().zip(&record.runs) {
            let labels = example.gold.iter().zip(run.outputs.last());
            for (word, (gold, label)) in example.words.iter().zip(labels) {
                if model.vocabulary().id(word) == Vocabulary::UNK {
                    words += 1;
                    right += usize::from(*gold == *label);
                }
            }
        }
        Some(Self { words, accuracy: ratio(right, words) })
    }
}

/// Everything that a record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// How the model was run.
    pub setting: Setting,
    /// How many sentences.
    pub sentences: usize,
    /// How many words.
    pub words: usize,
    /// `F1` or `accuracy`: which of the scores the paper's tables show for this task.
    pub score: tapir_data::Metric,
    /// Scores of the final outputs.
    pub scores: Scores,
    /// Incremental metrics of all sentences.
    pub incremental: Incremental,
    /// Of the sentences whose final output is right.
    pub right: Incremental,
    /// Of the sentences whose final output is wrong.
    pub wrong: Incremental,
    /// Measures of a live display.
    pub streaming: Streaming,
    /// WRITE and REVISE.
    pub actions: Actions,
    /// How good the revisions are; none in results of programs that did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Revisions>,
    /// Of the intents; none where the model knows none, or the sentences have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intents: Option<IntentScores>,
    /// Of the words that the model has no row for; none in results of programs that did not count
    /// them, and for models that read no rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownWords>,
    /// Floating-point operations per sentence.
    pub operations: Summary,
    /// Microseconds per word with all cores busy; `tapir bench` measures one stream alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Percentiles>,
}

impl Evaluation {
    /// Computes all metrics of a record of `dataset`.
    pub fn of(model: &Model, dataset: &Dataset, record: &Record) -> Self {
        let pairs = || dataset.examples.iter().zip(&record.runs);
        let names: Vec<_> = pairs()
            .map(|(example, run)| (dataset.names(&example.gold), dataset.names(run.outputs.last())))
            .collect();
        let delayed = record.setting.delay > 0;
        let split = |right: bool| {
            let runs =
                pairs().filter(move |(example, run)| (example.gold == run.outputs.last()) == right);
            Incremental::of(runs.map(|(_, run)| run), delayed)
        };
        let operations = Operations::of(model.config(), model.labels().len());
        let cost =
            |run: &SentenceRun| operations.sentence(&run.actions, record.setting.mode) as f64;
        let nanos: Vec<f64> = record
            .runs
            .iter()
            .flat_map(|run| &run.nanos)
            .map(|nanos| *nanos as f64 / 1000.0)
            .collect();
        Self {
            setting: record.setting,
            sentences: dataset.examples.len(),
            words: dataset.words(),
            score: dataset.score,
            scores: Scores::of(
                names.iter().map(|(gold, predicted)| (gold, predicted)),
                dataset.scheme,
            ),
            incremental: Incremental::of(record.runs.iter(), delayed),
            right: split(true),
            wrong: split(false),
            streaming: Streaming::of(dataset, record),
            actions: Actions::of(record.runs.iter().flat_map(|run| &run.actions)),
            revisions: Some(Revisions::of(dataset, record)),
            intents: IntentScores::of(model, dataset, record),
            unknown: UnknownWords::of(model, dataset, record),
            operations: Summary::of(record.runs.iter().map(cost)),
            latency: (!nanos.is_empty()).then(|| Percentiles::of(nanos)),
        }
    }

    /// The score that the paper's tables show for the task, in 0..=1.
    pub fn headline(&self) -> f64 {
        match self.score {
            tapir_data::Metric::F1 => self.scores.micro.f1,
            tapir_data::Metric::Accuracy => self.scores.accuracy,
        }
    }

    /// What [`headline`](Self::headline) is.
    pub fn headline_name(&self) -> &'static str {
        match self.score {
            tapir_data::Metric::F1 => "F1",
            tapir_data::Metric::Accuracy => "accuracy",
        }
    }
}
