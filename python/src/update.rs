//! What changed, as light Python objects: they hold what the library gave, and make Python's values
//! when they are asked for them.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tapir::{Action, Label, Scheme};

use crate::error::error;

/// One label that is new or different.
///
///     >>> import tapir
///     >>> update = tapir.Model.load("snips-small").session().push("play")
///     >>> update.edits[0].position, update.edits[0].label, update.edits[0].old
///     (0, 'O', None)
#[pyclass(frozen, eq, module = "tapir")]
#[derive(Clone, PartialEq)]
pub(crate) struct Edit(tapir::Edit);

#[pymethods]
impl Edit {
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __match_args__: (&str, &str, &str) = ("position", "label", "old");

    #[new]
    #[pyo3(signature = (position, label, old=None, probability=1.0, stability=None))]
    fn new(
        position: usize,
        label: &str,
        old: Option<&str>,
        probability: f32,
        stability: Option<f32>,
    ) -> Self {
        let (label, old) = (label.into(), old.map(Label::from));
        Self(tapir::Edit { position, label, old, probability, stability })
    }

    fn __getnewargs__(&self) -> (usize, &str, Option<&str>, f32, Option<f32>) {
        let tapir::Edit { position, label, old, probability, stability } = &self.0;
        (*position, label, old.as_deref(), *probability, *stability)
    }

    /// Index of the word, from 0 at the session's start.
    #[getter]
    fn position(&self) -> usize {
        self.0.position
    }

    /// Its label now.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    /// Its label before; None if it had none.
    #[getter]
    fn old(&self) -> Option<&str> {
        self.0.old.as_deref()
    }

    /// The model's probability for the label, above 0 and at most 1.
    #[getter]
    fn probability(&self) -> f32 {
        self.0.probability
    }

    /// The probability that the label will not change any more in this utterance; None if the model
    /// was not calibrated.
    #[getter]
    fn stability(&self) -> Option<f32> {
        self.0.stability
    }

    fn __repr__(&self) -> String {
        format!("Edit({})", edit(&self.0))
    }
}

/// `2: O -> B-x, 0.97`
fn edit(edit: &tapir::Edit) -> String {
    let tapir::Edit { position, label, old, probability, .. } = edit;
    match old {
        Some(old) => format!("{position}: {} -> {}, {probability:.2}", &**old, &**label),
        None => format!("{position}: {}, {probability:.2}", &**label),
    }
}

/// The difference that one call made to the labels.
///
/// Replaying updates in order gives the labels of the session: shorten the list to `length`, then
/// set every edited position. `apply` does that.
///
///     >>> import tapir
///     >>> session = tapir.Model.load("snips-small").session()
///     >>> labels = []
///     >>> for word in "add step to me".split():
///     ...     update = session.push(word)
///     ...     update.apply(labels)
///     >>> labels == session.labels
///     True
///     >>> update.action, [edit.position for edit in update.edits]
///     ('REVISE', [2, 3])
#[pyclass(frozen, eq, module = "tapir")]
#[derive(PartialEq)]
pub(crate) struct Update(pub(crate) tapir::Update);

#[pymethods]
impl Update {
    #[new]
    #[pyo3(signature = (
        step, action=None, policy=None, edits=Vec::new(), length=0, committed=0, intent=None,
        settled=None
    ))]
    #[allow(clippy::too_many_arguments)] // by name in Python
    fn new(
        step: usize,
        action: Option<&str>,
        policy: Option<f32>,
        edits: Vec<PyRef<'_, Edit>>,
        length: usize,
        committed: usize,
        intent: Option<PyRef<'_, Intent>>,
        settled: Option<PyRef<'_, Settled>>,
    ) -> PyResult<Self> {
        let settled = settled.map(|settled| settled.0.clone());
        let intent = intent.map(|intent| intent.0.clone());
        let action = match action {
            None => None,
            Some("WRITE") => Some(Action::Write),
            Some("REVISE") => Some(Action::Revise),
            Some(other) => {
                return Err(error(format!(
                    "action {other:?}: expected \"WRITE\", \"REVISE\" or None"
                )));
            }
        };
        let edits = edits.iter().map(|edit| edit.0.clone()).collect();
        Ok(Self(tapir::Update { step, action, policy, edits, length, committed, intent, settled }))
    }

    #[allow(clippy::type_complexity)] // Python's tuple of arguments
    fn __getnewargs__(
        &self,
    ) -> (
        usize,
        Option<&'static str>,
        Option<f32>,
        Vec<Edit>,
        usize,
        usize,
        Option<Intent>,
        Option<Settled>,
    ) {
        let tapir::Update { step, policy, edits, length, committed, .. } = &self.0;
        let edits = edits.iter().cloned().map(Edit).collect();
        let (intent, settled) = (self.intent(), self.settled());
        (*step, self.action(), *policy, edits, *length, *committed, intent, settled)
    }

    /// Words read so far.
    #[getter]
    fn step(&self) -> usize {
        self.0.step
    }

    /// "WRITE" or "REVISE": what was chosen for the last word read by this call; None if it read no
    /// word.
    #[getter]
    fn action(&self) -> Option<&'static str> {
        self.0.action.map(|action| match action {
            Action::Write => "WRITE",
            Action::Revise => "REVISE",
        })
    }

    /// The policy's value behind the action, 0 to 1: how likely it is that a revision changes
    /// something. None where no policy was asked.
    #[getter]
    fn policy(&self) -> Option<f32> {
        self.0.policy
    }

    /// Labels that are new or different, by position.
    #[getter]
    fn edits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let edits = self.0.edits.iter().map(|edit| Py::new(py, Edit(edit.clone())));
        PyTuple::new(py, edits.collect::<PyResult<Vec<_>>>()?)
    }

    /// How many words have a label now.
    #[getter]
    fn length(&self) -> usize {
        self.0.length
    }

    /// How many labels, from the start, will never be edited again.
    #[getter]
    fn committed(&self) -> usize {
        self.0.committed
    }

    /// What the utterance is about, as far as it was heard; None if the model knows no intents, or
    /// while it has read no word.
    #[getter]
    fn intent(&self) -> Option<Intent> {
        self.0.intent.clone().map(Intent)
    }

    /// What is settled since the answer before, where the session was asked for that
    /// (`model.session(settled=0.95)`); None if nothing is.
    #[getter]
    fn settled(&self) -> Option<Settled> {
        self.0.settled.clone().map(Settled)
    }

    /// Did the policy revise at the last word?
    #[getter]
    fn revised(&self) -> bool {
        self.0.revised()
    }

    /// Makes the same change to a list of labels that follows the session.
    fn apply(&self, labels: &Bound<'_, PyList>) -> PyResult<()> {
        let length = labels.len();
        if length > self.0.length {
            labels.del_slice(self.0.length, length)?;
        }
        for edit in &self.0.edits {
            if edit.position < labels.len() {
                labels.set_item(edit.position, &*edit.label)?;
            } else {
                labels.append(&*edit.label)?;
            }
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let tapir::Update { step, policy, edits, length, committed, intent, .. } = &self.0;
        let mut text = format!("Update(step={step}");
        if let Some(action) = self.action() {
            let _ = write!(text, ", {action}");
        }
        if let Some(policy) = policy {
            let _ = write!(text, ", policy={policy:.3}");
        }
        let edits: Vec<String> = edits.iter().map(edit).collect();
        let _ =
            write!(text, ", edits=[{}], length={length}, committed={committed}", edits.join("; "));
        if let Some(intent) = intent {
            let _ = write!(text, ", intent={} {:.3}", intent.label, intent.probability);
        }
        if let Some(settled) = self.settled() {
            let _ = write!(text, ", settled={:?}", settled.0.words);
        }
        text.push(')');
        text
    }
}

/// What an utterance is about.
#[pyclass(frozen, eq, module = "tapir")]
#[derive(Clone, PartialEq)]
pub(crate) struct Intent(pub(crate) tapir::Intent);

#[pymethods]
impl Intent {
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __match_args__: (&str, &str, &str) = ("label", "probability", "changed");

    #[new]
    #[pyo3(signature = (label, probability, changed=false, stability=None, in_domain=None))]
    fn new(
        label: &str,
        probability: f32,
        changed: bool,
        stability: Option<f32>,
        in_domain: Option<f32>,
    ) -> Self {
        let label = label.into();
        Self(tapir::Intent { label, probability, changed, stability, in_domain })
    }

    fn __getnewargs__(&self) -> (&str, f32, bool, Option<f32>, Option<f32>) {
        let tapir::Intent { label, probability, changed, stability, in_domain } = &self.0;
        (label, *probability, *changed, *stability, *in_domain)
    }

    /// Its label.
    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    /// The model's probability for it, 0 to 1.
    #[getter]
    fn probability(&self) -> f32 {
        self.0.probability
    }

    /// Is it another one than in the answer before, or the first?
    #[getter]
    fn changed(&self) -> bool {
        self.0.changed
    }

    /// The probability that it will not change any more in this utterance; None if the model was not
    /// calibrated.
    #[getter]
    fn stability(&self) -> Option<f32> {
        self.0.stability
    }

    /// The probability that the utterance is one of those that the model is for; None if it did not
    /// learn what is not.
    #[getter]
    fn in_domain(&self) -> Option<f32> {
        self.0.in_domain
    }

    /// Is the utterance more likely not one of those that the model is for? Then labels and intent
    /// mean nothing.
    #[getter]
    fn outside(&self) -> bool {
        self.0.is_outside()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let tapir::Intent { label, probability, changed, .. } = &self.0;
        let changed = if *changed { ", changed" } else { "" };
        Ok(format!("Intent({}, {probability:.3}{changed})", quoted(py, label)?))
    }
}

/// What is settled since the answer before: it will stay as it is, as likely as was asked for. It
/// is said once; what changes all the same is an edit like any other, and may settle anew.
#[pyclass(frozen, eq, module = "tapir")]
#[derive(Clone, PartialEq)]
pub(crate) struct Settled(tapir::Settled);

#[pymethods]
impl Settled {
    #[new]
    #[pyo3(signature = (words=Vec::new(), spans=Vec::new(), intent=false))]
    fn new(words: Vec<usize>, spans: Vec<PyRef<'_, Span>>, intent: bool) -> Self {
        let spans = spans.iter().map(|span| {
            let Span { label, start, end, .. } = &**span;
            tapir::Span { label: label.clone(), start: *start, end: *end }
        });
        Self(tapir::Settled { words, spans: spans.collect(), intent })
    }

    fn __getnewargs__(&self) -> (Vec<usize>, Vec<Span>, bool) {
        (self.0.words.clone(), self.spans(), self.0.intent)
    }

    /// The words whose labels are, by position.
    #[getter]
    fn words(&self) -> Vec<usize> {
        self.0.words.clone()
    }

    /// The spans that are: all their words, and the one after them.
    #[getter]
    fn spans(&self) -> Vec<Span> {
        self.0.spans.iter().map(|span| Span::of(span.clone(), None)).collect()
    }

    /// Is the intent?
    #[getter]
    fn intent(&self) -> bool {
        self.0.intent
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let spans: PyResult<Vec<_>> = self.spans().iter().map(|span| span.__repr__(py)).collect();
        let intent = if self.0.intent { ", intent" } else { "" };
        Ok(format!("Settled(words={:?}, spans=[{}]{intent})", self.0.words, spans?.join(", ")))
    }
}

/// A labelled stretch of words: `start` to `end`, which is one past its last word.
///
///     >>> import tapir
///     >>> tapir.Model.load("snips-small").tag("play some jazz by miles davis").spans[-1]
///     Span('artist', 4, 6, 'miles davis')
#[pyclass(frozen, eq, hash, module = "tapir")]
#[derive(Clone, Hash, PartialEq)]
pub(crate) struct Span {
    pub(crate) label: Label,
    /// Index of its first word.
    #[pyo3(get)]
    pub(crate) start: usize,
    /// Index after its last word.
    #[pyo3(get)]
    pub(crate) end: usize,
    /// Its words, with a space between them; None where the session does not keep words.
    #[pyo3(get)]
    pub(crate) text: Option<String>,
}

impl Span {
    /// A span of words, if these are known.
    pub(crate) fn of(span: tapir::Span, words: Option<&[String]>) -> Self {
        let tapir::Span { label, start, end } = span;
        let text = words.and_then(|words| words.get(start..end)).map(|words| words.join(" "));
        Self { label, start, end, text }
    }
}

/// The labelled stretches of a sentence whose labels are known, those of a corpus, say: decoded as
/// seqeval does, imperfect sequences included.
///
///     >>> import tapir
///     >>> tapir.spans(["play", "miles", "davis"], ["O", "B-artist", "I-artist"])
///     [Span('artist', 1, 3, 'miles davis')]
#[pyfunction]
pub(crate) fn spans(words: Vec<String>, labels: Vec<String>) -> PyResult<Vec<Span>> {
    if labels.len() != words.len() {
        return Err(error(format!(
            "{} labels for {} words: each word has one",
            labels.len(),
            words.len()
        )));
    }
    let found = tapir::spans(&labels, Scheme::Iob).into_iter();
    Ok(found.map(|span| Span::of(span, Some(&words))).collect())
}

#[pymethods]
impl Span {
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __match_args__: (&str, &str, &str, &str) = ("label", "start", "end", "text");

    #[new]
    #[pyo3(signature = (label, start, end, text=None))]
    fn new(label: &str, start: usize, end: usize, text: Option<String>) -> Self {
        Self { label: label.into(), start, end, text }
    }

    fn __getnewargs__(&self) -> (&str, usize, usize, Option<&str>) {
        (&self.label, self.start, self.end, self.text.as_deref())
    }

    /// What it is: the label without its `B-` or `I-`.
    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    fn __len__(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { label, start, end, text } = self;
        let label = quoted(py, label)?;
        Ok(match text {
            Some(text) => format!("Span({label}, {start}, {end}, {})", quoted(py, text)?),
            None => format!("Span({label}, {start}, {end})"),
        })
    }
}

/// A text as Python writes it.
pub(crate) fn quoted(py: Python<'_>, text: &str) -> PyResult<String> {
    Ok(pyo3::types::PyString::new(py, text).repr()?.to_string())
}

/// What `Session.finish` gives: the labels, the spans, and what changed at the end.
#[pyclass(frozen, eq, module = "tapir")]
pub(crate) struct Finish {
    /// The word, from 0, at which `labels` begin: 0 unless the session was longer than its window
    /// and undo, and has forgotten its first words.
    #[pyo3(get)]
    first: usize,
    labels: Vec<Label>,
    spans: Vec<Span>,
    /// The last edits, so that replaying all updates still gives the labels.
    #[pyo3(get)]
    update: Py<Update>,
}

impl PartialEq for Finish {
    fn eq(&self, other: &Self) -> bool {
        (self.first, &self.labels, &self.spans) == (other.first, &other.labels, &other.spans)
            && self.update.get() == other.update.get()
    }
}

impl Finish {
    /// What the library gave.
    pub(crate) fn of(py: Python<'_>, finish: tapir::Finish) -> PyResult<Self> {
        let tapir::Finish { first, labels, spans, update } = finish;
        let spans = spans.into_iter().map(|span| Span::of(span, None)).collect();
        Ok(Self { first, labels, spans, update: Py::new(py, Update(update))? })
    }
}

#[pymethods]
impl Finish {
    #[new]
    fn new(
        first: usize,
        labels: Vec<String>,
        spans: Vec<PyRef<'_, Span>>,
        update: Py<Update>,
    ) -> Self {
        let labels = labels.iter().map(|label| label.as_str().into()).collect();
        let spans = spans.iter().map(|span| (**span).clone()).collect();
        Self { first, labels, spans, update }
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (usize, Vec<&str>, Vec<Span>, Py<Update>) {
        let labels = self.labels.iter().map(|label| &**label).collect();
        (self.first, labels, self.spans.clone(), self.update.clone_ref(py))
    }

    /// The final labels of all words from `first` on.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.labels.iter().map(|label| &**label))
    }

    /// The labelled stretches, positions counted from the session's start.
    #[getter]
    fn spans(&self) -> Vec<Span> {
        self.spans.clone()
    }

    fn __repr__(&self) -> String {
        let labels: Vec<&str> = self.labels.iter().map(|label| &**label).collect();
        format!("Finish(labels=[{}])", labels.join(" "))
    }
}
