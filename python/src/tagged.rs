//! A labelled sentence.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};
use tapir::{Label, Session};

use crate::error::error;
use crate::update::{Intent, Span};

/// A sentence with its labels, as `Model.tag` gives it.
///
///     >>> import tapir
///     >>> tagged = tapir.Model.load("snips-small").tag("Play some jazz!")
///     >>> tagged.words, tagged.labels
///     (['play', 'some', 'jazz'], ['O', 'O', 'B-genre'])
///     >>> tagged.spans
///     [Span('genre', 2, 3, 'jazz')]
///     >>> tagged.offsets        # where the words stand in the text
///     [(0, 4), (5, 9), (10, 14)]
///     >>> list(tagged)
///     [('play', 'O'), ('some', 'O'), ('jazz', 'B-genre')]
#[pyclass(frozen, eq, module = "tapir", sequence)]
#[derive(Clone, PartialEq)]
pub(crate) struct Tagged {
    words: Vec<String>,
    labels: Vec<Label>,
    probabilities: Vec<f32>,
    offsets: Option<Vec<(usize, usize)>>,
    spans: Vec<Span>,
    intent: Option<Intent>,
}

impl Tagged {
    /// Of a session that has read these words and is finished.
    pub(crate) fn of(
        session: &Session,
        words: Vec<String>,
        offsets: Option<Vec<(usize, usize)>>,
    ) -> Self {
        let spans = session.spans().into_iter().map(|span| Span::of(span, Some(&words))).collect();
        let (labels, probabilities) = (session.labels(), session.probabilities());
        let intent = session.intent().map(Intent);
        Self { words, labels, probabilities, offsets, spans, intent }
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.iter().zip(&self.labels).map(|(word, label)| (word.as_str(), &**label))
    }
}

#[pymethods]
impl Tagged {
    #[new]
    #[pyo3(signature = (words, labels, probabilities, offsets, spans, intent=None))]
    fn new(
        words: Vec<String>,
        labels: Vec<String>,
        probabilities: Vec<f32>,
        offsets: Option<Vec<(usize, usize)>>,
        spans: Vec<PyRef<'_, Span>>,
        intent: Option<PyRef<'_, Intent>>,
    ) -> PyResult<Self> {
        if labels.len() != words.len() || probabilities.len() != words.len() {
            return Err(error("a label and a probability are needed for each word"));
        }
        let labels = labels.iter().map(|label| label.as_str().into()).collect();
        let spans = spans.iter().map(|span| (**span).clone()).collect();
        let intent = intent.map(|intent| (*intent).clone());
        Ok(Self { words, labels, probabilities, offsets, spans, intent })
    }

    #[allow(clippy::type_complexity)] // Python's tuple of arguments
    fn __getnewargs__(
        &self,
    ) -> (Vec<&str>, Vec<&str>, Vec<f32>, Option<Vec<(usize, usize)>>, Vec<Span>, Option<Intent>)
    {
        (
            self.words.iter().map(String::as_str).collect(),
            self.labels.iter().map(|label| &**label).collect(),
            self.probabilities.clone(),
            self.offsets.clone(),
            self.spans.clone(),
            self.intent.clone(),
        )
    }

    /// The words that the model read.
    #[getter]
    fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// The label of each word.
    #[getter]
    fn labels(&self) -> Vec<&str> {
        self.labels.iter().map(|label| &**label).collect()
    }

    /// The model's probability for each label, as a numpy array.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.probabilities)
    }

    /// Where each word begins and ends in the text, in characters; None if words were given.
    #[getter]
    fn offsets(&self) -> Option<Vec<(usize, usize)>> {
        self.offsets.clone()
    }

    /// The labelled stretches.
    #[getter]
    fn spans(&self) -> Vec<Span> {
        self.spans.clone()
    }

    /// What the sentence is about; None if the model knows no intents, or if there is no word.
    #[getter]
    fn intent(&self) -> Option<Intent> {
        self.intent.clone()
    }

    /// The words with all that is known of them, for a data frame or for JSON.
    ///
    ///     >>> import tapir
    ///     >>> sorted(tapir.Model.load("snips-small").tag("play jazz").to_dict())
    ///     ['intent', 'labels', 'offsets', 'probabilities', 'spans', 'words']
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        all.set_item("words", self.words())?;
        all.set_item("labels", self.labels())?;
        all.set_item("probabilities", &self.probabilities)?;
        all.set_item("offsets", &self.offsets)?;
        all.set_item("intent", self.intent.as_ref().map(|intent| &*intent.0.label))?;
        let spans = self.spans.iter().map(|span| {
            let one = PyDict::new(py);
            one.set_item("label", &*span.label)?;
            one.set_item("start", span.start)?;
            one.set_item("end", span.end)?;
            one.set_item("text", &span.text)?;
            Ok(one)
        });
        all.set_item("spans", spans.collect::<PyResult<Vec<_>>>()?)?;
        Ok(all)
    }

    fn __len__(&self) -> usize {
        self.words.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<(&str, &str)> {
        let count = self.words.len() as isize;
        let at = if index < 0 { index + count } else { index };
        let at = usize::try_from(at).ok().filter(|at| *at < self.words.len()).ok_or_else(|| {
            pyo3::exceptions::PyIndexError::new_err("the sentence has no such word")
        })?;
        Ok((&self.words[at], &self.labels[at]))
    }

    /// Words with their labels.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.pairs().collect::<Vec<_>>())?.try_iter()
    }

    fn __repr__(&self) -> String {
        let pairs: Vec<String> =
            self.pairs().map(|(word, label)| format!("{word}/{label}")).collect();
        format!("Tagged({})", pairs.join(" "))
    }
}
