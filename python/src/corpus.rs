//! The corpora of tasks.

use std::path::PathBuf;

use pyo3::prelude::*;
use tapir_data::{Split, Task};

use crate::error::error;

/// Words, a label for each, and the intent if there is one: `Sentence` of `tapir/corpora.py`.
pub(crate) type Labelled = (Vec<String>, Vec<String>, Option<String>);

/// The sentences of a task's split; see `tapir/corpora.py`.
#[pyfunction]
#[pyo3(signature = (task, split="test", data=None))]
pub(crate) fn load_corpus(
    py: Python<'_>,
    task: &str,
    split: &str,
    data: Option<PathBuf>,
) -> PyResult<Vec<Labelled>> {
    let split = [Split::Train, Split::Valid, Split::Test]
        .into_iter()
        .find(|known| known.name() == split)
        .ok_or_else(|| {
            error(format!("split {split:?}: expected \"train\", \"valid\" or \"test\""))
        })?;
    let corpus = py
        .detach(|| Task::open(task).and_then(|task| task.load(data.as_deref())))
        .map_err(error)?;
    let texts = |list: &[tapir_data::Text]| list.iter().map(ToString::to_string).collect();
    let sentences = corpus.split(split).iter().map(|sentence| {
        let intent = sentence.intent.as_ref().map(ToString::to_string);
        (texts(&sentence.words), texts(&sentence.labels), intent)
    });
    Ok(sentences.collect())
}
