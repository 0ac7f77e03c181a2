//! A session: words in, labels out, one word at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyList, PyTuple};

use crate::error::refused;
use crate::input::{Given, Stability, mode_name};
use crate::model::Model;
use crate::update::{Finish, Intent, Span, Update};

/// A stream of words and their labels so far. `Model.session` starts one.
///
/// Words that a recogniser takes back are undone exactly: the session is then, to the bit, as if
/// they had never been read.
///
///     >>> import tapir
///     >>> session = tapir.Model.load("snips-small").session()
///     >>> session.push("play")
///     Update(step=1, WRITE, policy=0.000, edits=[0: O, 0.97], length=1, committed=0)
///     >>> session.update(["play", "sum"]).length
///     2
///     >>> session.update("play some jazz").step   # a recogniser's whole new hypothesis
///     3
///     >>> session.revoke(1).length                # it took its last word back
///     2
///     >>> session.push("blues").step
///     3
///     >>> session.finish()
///     Finish(labels=[O O B-genre])
///
/// While a session computes, other threads run. Two threads may share one session: they take turns.
#[pyclass(frozen, module = "tapir", weakref)]
pub(crate) struct Session {
    inner: Mutex<tapir::Session>,
    mode: tapir::Mode,
    model: Py<Model>,
    /// The names of the labels by id: those of the model, shared.
    names: Py<PyTuple>,
}

impl Session {
    pub(crate) fn new(
        session: tapir::Session,
        mode: tapir::Mode,
        model: Py<Model>,
        names: Py<PyTuple>,
    ) -> Self {
        Self { inner: Mutex::new(session), mode, model, names }
    }

    /// Who waits for another thread's computation lets all threads of Python go on meanwhile, so
    /// that nothing can wait for both.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, tapir::Session> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes without holding up other threads of Python.
    fn compute<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut tapir::Session) -> tapir::Result<T> + Send,
    ) -> PyResult<T> {
        let lock = || self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        py.detach(|| work(&mut lock())).map_err(refused)
    }
}

#[pymethods]
impl Session {
    /// Reads one word, as it is, and says what changed. `stability` is how likely the recogniser
    /// finds it, from 0 to 1, that it will not take the word back: a factor of our `stabilities`.
    #[pyo3(signature = (word, *, stability=1.0))]
    fn push(&self, py: Python<'_>, word: &str, stability: f32) -> PyResult<Update> {
        self.compute(py, |session| session.push_with(word, stability)).map(Update)
    }

    /// Takes a recogniser's whole new hypothesis: the words that it shares with the last one stay,
    /// the rest is taken back and read anew. A text is split by the model's tokenizer, a list of
    /// words is taken as it is. `stability` is how likely the recogniser finds it that its words
    /// stay: of all alike, or of each.
    #[pyo3(
        signature = (words, *, stability=Stability::All(1.0)),
        text_signature = "($self, words, *, stability=1.0)"
    )]
    fn update(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        stability: Stability,
    ) -> PyResult<Update> {
        let words = stability.of(Given::of(words)?.words(&self.model.get().inner))?;
        self.compute(py, |session| session.update_with(words)).map(Update)
    }

    /// Takes back the last `words` words. More than `undoable` is an error that changes nothing.
    #[pyo3(signature = (words=1))]
    fn revoke(&self, py: Python<'_>, words: usize) -> PyResult<Update> {
        self.compute(py, |session| session.revoke(words)).map(Update)
    }

    /// Ends the utterance: labels what a delayed model holds back, then revises a last time unless
    /// the session was started with `final_pass=False`. Afterwards only `reset` and questions are
    /// possible.
    fn finish(&self, py: Python<'_>) -> PyResult<Finish> {
        Finish::of(py, self.compute(py, tapir::Session::finish)?)
    }

    /// Starts a new utterance with the same options.
    fn reset(&self, py: Python<'_>) {
        self.lock(py).reset();
    }

    /// The labels of the words from `first` on.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = self.lock(py).label_ids().to_vec();
        let names = self.names.bind(py);
        let labels = ids.into_iter().map(|id| names.get_item(usize::from(id)));
        PyList::new(py, labels.collect::<PyResult<Vec<_>>>()?)
    }

    /// The model's probability for each of these labels, as a numpy array.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let probabilities = self.lock(py).probabilities();
        PyArray1::from_vec(py, probabilities)
    }

    /// The probability that each of these labels will not change any more in this utterance, as a
    /// numpy array; None if the model was not calibrated.
    #[getter]
    fn stabilities<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        let stabilities = self.lock(py).stabilities();
        stabilities.map(|stabilities| PyArray1::from_vec(py, stabilities))
    }

    /// The probability that a span will stay as it is: that its labels do, and that the word after
    /// it does not continue it. None if there is no such stretch of words, or the model was not
    /// calibrated.
    fn span_stability(&self, py: Python<'_>, span: &Span) -> Option<f32> {
        let Span { label, start, end, .. } = span;
        self.lock(py).span_stability(&tapir::Span {
            label: label.clone(),
            start: *start,
            end: *end,
        })
    }

    /// The probability that the utterance is one of those that the model is for, as far as it was
    /// heard; None before the first word, or if the model did not learn what is not for it.
    #[getter]
    fn in_domain(&self, py: Python<'_>) -> Option<f32> {
        self.lock(py).in_domain()
    }

    /// What the utterance is about, as far as it was heard; None if the model knows no intents, or
    /// before the first word.
    #[getter]
    fn intent(&self, py: Python<'_>) -> Option<Intent> {
        self.lock(py).intent().map(Intent)
    }

    /// The probability of every intent, by id (the order of `Model.intents`), as a numpy array; None
    /// where there is no intent.
    fn intent_distribution<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        let distribution = self.lock(py).intent_distribution();
        distribution.map(|values| PyArray1::from_vec(py, values))
    }

    /// The probability of every label for one word, by label id (the order of `Model.labels`); None
    /// if the word has no label or is forgotten.
    fn distribution<'py>(
        &self,
        py: Python<'py>,
        position: usize,
    ) -> Option<Bound<'py, PyArray1<f32>>> {
        // A delay is added to the position.
        let distribution =
            (position < isize::MAX as usize).then(|| self.lock(py).distribution(position));
        distribution.flatten().map(|values| PyArray1::from_vec(py, values))
    }

    /// The labelled stretches of the words from `first` on, positions counted from the session's
    /// start.
    #[getter]
    fn spans(&self, py: Python<'_>) -> Vec<Span> {
        let spans = self.lock(py).spans();
        spans.into_iter().map(|span| Span::of(span, None)).collect()
    }

    /// How many words can be taken back now.
    #[getter]
    fn undoable(&self, py: Python<'_>) -> usize {
        self.lock(py).undoable()
    }

    /// How many labels, from the start, will never be edited again: none while the session is
    /// shorter than its window and undo, all of them when it is finished.
    #[getter]
    fn committed(&self, py: Python<'_>) -> usize {
        self.lock(py).committed()
    }

    /// The first word whose label is still held: 0 until a session is longer than its window and
    /// undo.
    #[getter]
    fn first(&self, py: Python<'_>) -> usize {
        self.lock(py).first()
    }

    /// Bytes that the session holds, its model not included.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        self.lock(py).bytes()
    }

    /// Which passes run: "two-pass", "restart" or "first-pass".
    #[getter]
    fn mode(&self) -> &'static str {
        mode_name(self.mode)
    }

    /// The model that the session runs.
    #[getter]
    fn model(&self, py: Python<'_>) -> Py<Model> {
        self.model.clone_ref(py)
    }

    /// Changes the policy's threshold from the next word on: 0 revises at every word, 1 never does.
    fn set_threshold(&self, py: Python<'_>, threshold: f32) -> PyResult<()> {
        self.lock(py).set_threshold(threshold).map_err(refused)
    }

    /// Words read so far.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock(py).words()
    }

    /// A session that has read nothing is there, too.
    #[allow(clippy::unused_self)] // Python's signature
    fn __bool__(&self) -> bool {
        true
    }

    #[allow(clippy::unused_self)] // Python's signature
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a session cannot be pickled: pickle the model and the words, and read them again",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let session = self.lock(py);
        let labels: Vec<_> = session.labels();
        let newest: Vec<&str> =
            labels[labels.len().saturating_sub(8)..].iter().map(|label| &**label).collect();
        let more = if labels.len() > newest.len() { "... " } else { "" };
        format!(
            "<tapir.Session {}, {} words: [{more}{}]>",
            mode_name(self.mode),
            session.words(),
            newest.join(" ")
        )
    }
}
