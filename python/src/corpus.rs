//! The corpora of tasks.

use std::path::PathBuf;

use pyo3::prelude::*;
use tapir_data::{Split, Task};

use crate::error::error;

/// The sentences of a task's split, each as its words and its labels: "snips", which ships in the
/// package, or a task file (docs/data.md). `data` is the folder of its corpus, if it is not where
/// the task says.
///
///     >>> import tapir
///     >>> words, labels = tapir.load_corpus("snips", "test")[0]
///     >>> words[:3], labels[:3]
///     (['add', 'sabrina', 'salerno'], ['O', 'B-artist', 'I-artist'])
#[pyfunction]
#[pyo3(signature = (task, split="test", data=None))]
pub(crate) fn load_corpus(
    py: Python<'_>,
    task: &str,
    split: &str,
    data: Option<PathBuf>,
) -> PyResult<Vec<(Vec<String>, Vec<String>)>> {
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
    let sentences = corpus.split(split).iter();
    Ok(sentences.map(|sentence| (texts(&sentence.words), texts(&sentence.labels))).collect())
}
