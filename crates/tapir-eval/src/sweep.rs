//! Every threshold in one pass over the data (§6, effect of threshold).
//!
//! The reviser's output for a prefix does not depend on the threshold, so that it is computed once
//! and kept while a sentence is read with each threshold. The controller depends on what was done
//! before, through the memory, and runs for each one; but where two thresholds would decide alike
//! at every step the runs are the same, and the second is not made.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{Action, Mode, Model};

use crate::record::numbered;
use crate::{Dataset, Evaluation, Record, Result, SentenceRun, Setting};

/// The paper's thresholds: 0, 0.1, … 1.
pub fn thresholds() -> Vec<f32> {
    (0..=10u8).map(|tenth| f32::from(tenth) / 10.0).collect()
}

/// A finer list, to choose from: 0 to 1 in steps of 0.05, and 0.02.
///
/// ```
/// let list = tapir_eval::fine_thresholds();
/// assert_eq!(list[..4], [0.0, 0.02, 0.05, 0.1]);
/// assert!(tapir_eval::thresholds().iter().all(|paper| list.contains(paper)));
/// ```
pub fn fine_thresholds() -> Vec<f32> {
    let mut list: Vec<f32> = (0..=20u8).map(|twentieth| f32::from(twentieth) / 20.0).collect();
    list.insert(1, 0.02);
    list
}

/// Runs a model with each threshold; the records come in the order of the thresholds.
///
/// ```
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// use tapir_eval::{Dataset, sweep};
/// let sentence = tapir_data::Sentence::new(["play", "jazz"], ["O", "B-genre"]);
/// let dataset = Dataset::of(&model, &[sentence])?;
/// let records = sweep(&model, &dataset, &[0.0, 1.0], || ())?;
/// assert_eq!((records[0].runs[0].revisions(), records[1].runs[0].revisions()), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep(
    model: &Model,
    dataset: &Dataset,
    thresholds: &[f32],
    progress: impl Fn() + Sync,
) -> Result<Vec<Record>> {
    let setting = Setting::of(model).mode(Mode::TwoPass);
    let options = setting.options().keep_revisions();
    model.session_with(options)?;
    let sentences = dataset.examples.par_iter().enumerate().map(|(i, example)| {
        let mut session = model.session_with(options)?;
        let mut runs: Vec<SentenceRun> = Vec::with_capacity(thresholds.len());
        for &threshold in thresholds {
            let same = runs.last().filter(|run| decides_alike(run, threshold));
            runs.push(if let Some(run) = same {
                run.clone()
            } else {
                session.set_threshold(threshold)?;
                session.reset();
                let run =
                    SentenceRun::make(&mut session, example).map_err(|error| numbered(error, i))?;
                SentenceRun { nanos: Vec::new(), ..run } // with kept revisions the time means nothing
            });
        }
        progress();
        Ok(runs)
    });
    let sentences: Vec<Vec<SentenceRun>> = sentences.collect::<Result<_>>()?;
    let mut records: Vec<Record> = thresholds
        .iter()
        .map(|&threshold| Record {
            setting: setting.threshold(threshold),
            runs: Vec::with_capacity(sentences.len()),
        })
        .collect();
    for runs in sentences {
        records.iter_mut().zip(runs).for_each(|(record, run)| record.runs.push(run));
    }
    Ok(records)
}

/// Would this threshold decide at every step as the run did? Then the whole run is the same.
fn decides_alike(run: &SentenceRun, threshold: f32) -> bool {
    run.actions.iter().zip(&run.policy).all(|(action, value)| {
        value.is_some_and(|value| *action == Action::decide(value, threshold))
    })
}

/// All metrics by threshold: the paper's table of raw numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// One evaluation for each threshold, which its setting names.
    pub evaluations: Vec<Evaluation>,
}

impl Sweep {
    /// Evaluates the records of [`sweep`].
    pub fn of(model: &Model, dataset: &Dataset, records: &[Record]) -> Self {
        let evaluations =
            records.par_iter().map(|record| Evaluation::of(model, dataset, record)).collect();
        Self { evaluations }
    }
}
