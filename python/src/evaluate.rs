//! The paper's measures. What is measured is given back as JSON, of which `tapir/evaluation.py`
//! makes Python's objects.

use std::num::NonZeroUsize;

use pyo3::prelude::*;
use tapir_data::Sentence;
use tapir_eval::{Dataset, Evaluation, Record, Setting, Sweep};

use crate::corpus::Labelled;
use crate::error::error;
use crate::input::Options;
use crate::model::Model;
use crate::watch::Watch;

/// Sentences for each core between two looks at Python.
const SENTENCES: usize = 32;

/// Measures a model on sentences.
#[pyfunction]
#[pyo3(signature = (model, sentences, threshold=None, mode=None, progress=None))]
pub(crate) fn evaluate(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    sentences: Vec<Labelled>,
    threshold: Option<f32>,
    mode: Option<String>,
    progress: Option<bool>,
) -> PyResult<String> {
    let model = &model.get().inner;
    let options = Options { threshold, mode, ..Options::default() };
    let setting = options.setting(model)?;
    let dataset = dataset(model, sentences)?;
    let mut runs = Vec::new();
    in_parts(py, &dataset, "evaluating", progress, |part| {
        runs.extend(Record::make(model, part, setting, || ())?.runs);
        Ok(())
    })?;
    let setting = Setting { delay: model.config().delay, ..setting };
    let record = Record { setting, runs };
    let evaluation = py.detach(|| Evaluation::of(model, &dataset, &record));
    serde_json::to_string(&evaluation).map_err(error)
}

/// Measures every threshold in one pass over sentences.
#[pyfunction]
#[pyo3(signature = (model, sentences, thresholds=None, progress=None))]
pub(crate) fn sweep(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    sentences: Vec<Labelled>,
    thresholds: Option<Vec<f32>>,
    progress: Option<bool>,
) -> PyResult<String> {
    let model = &model.get().inner;
    let thresholds = thresholds.unwrap_or_else(tapir_eval::thresholds);
    for threshold in &thresholds {
        let options = tapir::SessionOptions::new().threshold(*threshold);
        options.check(model).map_err(error)?;
    }
    let dataset = dataset(model, sentences)?;
    let mut records: Vec<Record> = Vec::new();
    in_parts(py, &dataset, "sweeping", progress, |part| {
        let more = tapir_eval::sweep(model, part, &thresholds, || ())?;
        if records.is_empty() {
            records = more;
        } else {
            for (record, more) in records.iter_mut().zip(more) {
                record.runs.extend(more.runs);
            }
        }
        Ok(())
    })?;
    // Scored one after the other, on this thread: rayon's own pool would be missing in a process
    // that was forked.
    let evaluations = py.detach(|| {
        let scored = records.iter().map(|record| Evaluation::of(model, &dataset, record));
        Sweep { evaluations: scored.collect() }
    });
    serde_json::to_string(&evaluations.evaluations).map_err(error)
}

/// The sentences as a model is evaluated on them.
fn dataset(model: &tapir::Model, sentences: Vec<Labelled>) -> PyResult<Dataset> {
    for (i, (words, labels, _)) in sentences.iter().enumerate() {
        if words.len() != labels.len() {
            return Err(error(format!(
                "sentence {i}: {} words and {} labels; a label is needed for each word",
                words.len(),
                labels.len()
            )));
        }
    }
    let sentences = sentences.into_iter().map(|(words, labels, intent)| {
        let sentence = Sentence::new(words, labels);
        Sentence { intent: intent.map(Into::into), ..sentence }
    });
    let sentences: Vec<Sentence> = sentences.collect();
    Dataset::of(model, &sentences).map_err(|fault| numbered(fault, 0))
}

/// Works through a dataset in parts, on threads of its own; between two parts it looks at Python.
fn in_parts(
    py: Python<'_>,
    dataset: &Dataset,
    what: &str,
    progress: Option<bool>,
    mut work: impl FnMut(&Dataset) -> tapir_eval::Result<()> + Send,
) -> PyResult<()> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(error)?;
    let watch = Watch::new(py, what, dataset.examples.len(), progress)?;
    let mut done = 0;
    let result = dataset.examples.chunks(SENTENCES * threads).try_for_each(|examples| {
        let part = Dataset { examples: examples.to_vec(), ..without_examples(dataset) };
        py.detach(|| pool.install(|| work(&part))).map_err(|fault| numbered(fault, done))?;
        done += examples.len();
        watch.look(py, done)
    });
    watch.close(py, result)
}

/// All of a dataset but its sentences.
fn without_examples(dataset: &Dataset) -> Dataset {
    let Dataset { task, split, scheme, score, labels, known, examples: _ } = dataset;
    let (task, split, labels) = (task.clone(), split.clone(), labels.clone());
    Dataset { task, split, scheme: *scheme, score: *score, labels, known: *known, examples: vec![] }
}

/// A sentence is counted from the start of the corpus, not of its part; and from 0, as Python does.
fn numbered(fault: tapir_eval::Error, before: usize) -> PyErr {
    use tapir_eval::Error::{Sentence, TooLong};
    error(match fault {
        Sentence { sentence, cause } => Sentence { sentence: before + sentence - 1, cause },
        TooLong { sentence, words, limit } => {
            TooLong { sentence: before + sentence - 1, words, limit }
        }
        other => other,
    })
}
