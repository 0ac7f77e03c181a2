//! What the policy does, whether it is right to, how far the two passes agree, and where the time
//! goes (§6.1).

use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{Action, FinalPass, Mode, Model, Session};

use crate::f1::ratio;
use crate::record::numbered;
use crate::{
    Dataset, GoldSentence, Percentiles, Record, Result, Revisions, SentenceRun, Setting, Summary,
    edit_overhead,
};

/// Steps by action and by the prefix that the policy faced: table "overall distribution of actions
/// and prefixes".
///
/// A prefix is correct if all its labels match the *final* output. It is the output as it stood
/// before the step: what a revision would find. The empty prefix of the first step is correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// REVISE with a correct prefix: R∩C, a revision that was not needed.
    pub revise_correct: usize,
    /// REVISE with an incorrect prefix: R∩I.
    pub revise_incorrect: usize,
    /// WRITE with an incorrect prefix: W∩I.
    pub write_incorrect: usize,
    /// WRITE with a correct prefix: W∩C.
    pub write_correct: usize,
}

impl Policy {
    /// Counts the steps of a record.
    pub fn of(record: &Record) -> Self {
        let mut counts = Self::default();
        for run in &record.runs {
            let last = run.outputs.last();
            for (step, action) in run.actions.iter().enumerate() {
                // Before step t (from 0) of a model with delay d, t - d words had a label.
                let words = step.saturating_sub(record.setting.delay);
                let correct = words == 0 || last.starts_with(run.outputs.at(words - 1));
                *match (action, correct) {
                    (Action::Revise, true) => &mut counts.revise_correct,
                    (Action::Revise, false) => &mut counts.revise_incorrect,
                    (Action::Write, false) => &mut counts.write_incorrect,
                    (Action::Write, true) => &mut counts.write_correct,
                } += 1;
            }
        }
        counts
    }

    /// All REVISE.
    pub fn revise(&self) -> usize {
        self.revise_correct + self.revise_incorrect
    }

    /// All WRITE.
    pub fn write(&self) -> usize {
        self.write_correct + self.write_incorrect
    }

    /// The share of REVISE among all steps.
    pub fn revise_share(&self) -> f64 {
        ratio(self.revise(), self.revise() + self.write())
    }

    /// The paper's eight shares: R∩C/R, R∩I/R, W∩I/W, W∩C/W, then R∩C/C, W∩C/C, W∩I/I, R∩I/I.
    pub fn shares(&self) -> [f64; 8] {
        let (correct, incorrect) = (
            self.revise_correct + self.write_correct,
            self.revise_incorrect + self.write_incorrect,
        );
        [
            ratio(self.revise_correct, self.revise()),
            ratio(self.revise_incorrect, self.revise()),
            ratio(self.write_incorrect, self.write()),
            ratio(self.write_correct, self.write()),
            ratio(self.revise_correct, correct),
            ratio(self.write_correct, correct),
            ratio(self.write_incorrect, incorrect),
            ratio(self.revise_incorrect, incorrect),
        ]
    }
}

/// Final outputs of first pass and reviser, each alone: figure "agreement".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Share of sentences with the same final output.
    pub sentences: f64,
    /// Share of words with the same final label.
    pub words: f64,
    /// Edit overhead of the two-pass model where they agree.
    pub overhead_agree: Summary,
    /// The same where they disagree.
    pub overhead_disagree: Summary,
    /// Percentiles of the first.
    pub agree_percentiles: Percentiles,
    /// Percentiles of the second.
    pub disagree_percentiles: Percentiles,
}

/// Seconds by component, on one core: one stream at a time over the same sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// The incremental processor.
    pub first_pass: f64,
    /// Memory, controller and policy: what the two-pass model without revisions takes on top.
    pub controller: f64,
    /// Revisions: what the two-pass model takes on top of that.
    pub reviser: f64,
}

/// What the policy does and costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// How the model was run.
    pub setting: Setting,
    /// Actions and prefixes.
    pub policy: Policy,
    /// How good the revisions are, and of what kind; none in results of programs that did not
    /// measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Revisions>,
    /// Agreement of the two passes.
    pub agreement: Agreement,
    /// Where the time goes.
    pub time: Time,
}

/// So many sentences are enough to see where the time goes.
const TIMED: usize = 200;

impl Analysis {
    /// Analyses a record of a two-pass model; `progress` is called after each sentence.
    pub fn of(
        model: &Model,
        dataset: &Dataset,
        record: &Record,
        progress: impl Fn() + Sync,
    ) -> Result<Self> {
        Ok(Self {
            setting: record.setting,
            policy: Policy::of(record),
            revisions: Some(Revisions::of(dataset, record)),
            agreement: agreement(model, dataset, record, progress)?,
            time: time(model, dataset, record.setting)?,
        })
    }
}

fn agreement(
    model: &Model,
    dataset: &Dataset,
    record: &Record,
    progress: impl Fn() + Sync,
) -> Result<Agreement> {
    let pairs =
        dataset.examples.par_iter().zip(&record.runs).enumerate().map(|(i, (example, run))| {
            let named = |error| numbered(error, i);
            let first = Setting::of(model).mode(Mode::FirstPass).session(model)?;
            let first = last(first, example).map_err(named)?;
            // With τ = 1 only the last revision of `finish` runs the reviser: once a sentence and
            // not once a word.
            let second = Setting::of(model).mode(Mode::TwoPass).threshold(1.0).options();
            let second = model.session_with(second.final_pass(FinalPass::Revise))?;
            let second = last(second, example).map_err(named)?;
            let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
            progress();
            Ok((same, first.len(), edit_overhead(&run.outputs)))
        });
    let pairs: Vec<(usize, usize, f64)> = pairs.collect::<Result<_>>()?;
    let (same, words) = pairs.iter().fold((0, 0), |(s, w), (same, words, _)| (s + same, w + words));
    let overhead = |agree: bool| -> Vec<f64> {
        pairs
            .iter()
            .filter(|(same, words, _)| (same == words) == agree)
            .map(|pair| pair.2)
            .collect()
    };
    let (agree, disagree) = (overhead(true), overhead(false));
    Ok(Agreement {
        sentences: ratio(agree.len(), pairs.len()),
        words: ratio(same, words),
        overhead_agree: Summary::of(agree.iter().copied()),
        overhead_disagree: Summary::of(disagree.iter().copied()),
        agree_percentiles: Percentiles::of(agree),
        disagree_percentiles: Percentiles::of(disagree),
    })
}

/// The final output of a session that reads a whole sentence.
fn last(mut session: Session, example: &GoldSentence) -> Result<Vec<u16>> {
    for word in &example.words {
        session.push(word)?;
    }
    session.finish()?;
    Ok(session.label_ids().to_vec())
}

/// Components cannot be timed from outside, but runs without them can: the differences are theirs.
fn time(model: &Model, dataset: &Dataset, setting: Setting) -> Result<Time> {
    let examples = &dataset.examples[..dataset.examples.len().min(TIMED)];
    let seconds = |setting: Setting| -> Result<f64> {
        let mut session = setting.session(model)?;
        let mut best = f64::INFINITY;
        // The quickest of three: what is slower was disturbed.
        for _ in 0..3 {
            let start = Instant::now();
            for (i, example) in examples.iter().enumerate() {
                session.reset();
                SentenceRun::make(&mut session, example).map_err(|error| numbered(error, i))?;
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    let first_pass = seconds(setting.mode(Mode::FirstPass))?;
    let without = seconds(setting.mode(Mode::TwoPass).threshold(1.0))?;
    let all = seconds(setting.mode(Mode::TwoPass))?;
    Ok(Time {
        first_pass,
        controller: (without - first_pass).max(0.0),
        reviser: (all - without).max(0.0),
    })
}
