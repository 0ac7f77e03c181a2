//! A model: loaded once, shared by sessions and threads.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use tapir::{Config, Labels, Parts, Scheme, Vocabulary, WordPieces, WordVectors};

use crate::error::{error, refused};
use crate::input::{Options, mode_name};
use crate::session::Session;
use crate::tag;
use crate::trace::Trace;
use crate::update::quoted;

/// A model that labels words. It does not change, and any number of sessions and threads share it.
///
///     >>> import tapir
///     >>> model = tapir.Model.load("snips-small")
///     >>> model
///     <tapir.Model 'snips-small': 72 labels, two-pass, threshold 0.1>
///     >>> model.tag("play some jazz by miles davis")
///     Tagged(play/O some/O jazz/B-genre by/O miles/B-artist davis/I-artist)
///
/// A model is pickled by its name if it ships in the package, else with all its files.
#[pyclass(frozen, module = "tapir", weakref)]
pub(crate) struct Model {
    pub(crate) inner: tapir::Model,
    /// Under which it ships in the package.
    shipped: Option<String>,
    /// The names of the labels by id.
    names: Py<PyTuple>,
}

impl Model {
    fn new(py: Python<'_>, model: tapir::Model, shipped: Option<String>) -> PyResult<Self> {
        let names = PyTuple::new(py, model.labels().iter().map(|label| &**label))?.unbind();
        Ok(Self { inner: model, shipped, names })
    }
}

#[pymethods]
impl Model {
    /// Loads a model: the name of one that ships ("snips", "snips-small" or "pos"), or the path of a
    /// model's directory or of a training run. What is on disk comes first.
    #[classmethod]
    #[pyo3(
        signature = (name=PathBuf::from("snips")), text_signature = "(name='snips')"
    )]
    fn load(class: &Bound<'_, PyType>, name: PathBuf) -> PyResult<Self> {
        let py = class.py();
        let model = py.detach(|| tapir::Model::find(&name)).map_err(refused)?;
        let shipped = tapir::Model::find_shipped(&name);
        Self::new(py, model, shipped.map(str::to_owned))
    }

    /// The names of the models that ship in the package.
    ///
    ///     >>> import tapir
    ///     >>> tapir.Model.names()
    ///     ['snips', 'snips-small', 'pos']
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        tapir::Model::embedded_names().collect()
    }

    /// Labels a text, or many on all cores.
    ///
    /// A `str` gives one `Tagged`; a list (or any iterable) gives a list of them, in its order. Its
    /// items are texts, which the model's tokenizer splits, or lists of words, which are taken as
    /// they are.
    ///
    ///     >>> import tapir
    ///     >>> model = tapir.Model.load("snips-small")
    ///     >>> model.tag(["play some jazz", ["book", "a", "table"]])
    ///     [Tagged(play/O some/O jazz/B-genre), Tagged(book/O a/O table/O)]
    ///
    /// `words=True` says that `what` is the words of one sentence, and gives one `Tagged`; without
    /// it each of them would be a text of its own.
    ///
    ///     >>> model.tag(["play", "some", "jazz"], words=True)
    ///     Tagged(play/O some/O jazz/B-genre)
    ///
    /// Every sentence is read as by a session, word by word, and revised at its end unless
    /// `final_pass` is False. `threads` is by default one per core. A bar shows itself on a
    /// terminal when the work takes long; `progress` forces it (True) or forbids it (False). Ctrl-C
    /// stops.
    #[pyo3(signature = (
        what, *, words=false, threshold=None, window=None, mode=None, final_pass=true,
        threads=None, progress=None
    ))]
    #[allow(clippy::too_many_arguments)] // Python's keywords
    fn tag<'py>(
        &self,
        what: &Bound<'py, PyAny>,
        words: bool,
        threshold: Option<f32>,
        window: Option<usize>,
        mode: Option<String>,
        final_pass: bool,
        threads: Option<usize>,
        progress: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let final_pass = Some(final_pass);
        let options = Options { threshold, window, mode, final_pass, ..Options::default() };
        if words {
            return tag::tag_words(&self.inner, what, &options);
        }
        tag::tag(&self.inner, what, &options, threads, progress)
    }

    /// Starts a session.
    ///
    /// - `threshold`: of the policy, from 0, which revises at every word, to 1, which never does;
    ///   by default the model's.
    /// - `undo`: how many words can be taken back at any time.
    /// - `window`: how many words, from the newest back, a revision reads and may edit; by default,
    ///   and at most, as many as the model reads.
    /// - `mode`: "two-pass", "restart" (the reviser at every word) or "first-pass"; by default what
    ///   the model has.
    /// - `final_pass`: whether `finish` revises a last time.
    /// - `settled`: updates say what is settled: the labels, spans and intent that will stay as they
    ///   are with at least this probability, such as 0.95. The model must be calibrated.
    #[pyo3(signature = (
        *, threshold=None, undo=32, window=None, mode=None, final_pass=true, settled=None
    ))]
    fn session(
        slf: &Bound<'_, Self>,
        threshold: Option<f32>,
        undo: usize,
        window: Option<usize>,
        mode: Option<String>,
        final_pass: bool,
        settled: Option<f32>,
    ) -> PyResult<Session> {
        let this = slf.get();
        let (undo, final_pass) = (Some(undo), Some(final_pass));
        let options = Options { threshold, undo, window, mode, final_pass, settled };
        let session = this.inner.session_with(options.build()?).map_err(refused)?;
        let mode = options.mode()?.unwrap_or_else(|| this.inner.default_mode());
        Ok(Session::new(session, mode, slf.clone().unbind(), this.names.clone_ref(slf.py())))
    }

    /// The words that the model reads of a text.
    ///
    ///     >>> import tapir
    ///     >>> tapir.Model.load("snips-small").words("What's playing, Dr. Who?")
    ///     ['what', 's', 'playing', 'dr', 'who']
    fn words(&self, text: &str) -> Vec<String> {
        self.inner.config().tokenizer.words(text)
    }

    /// How the model reads a text or a list of words, step by step. In a notebook it shows itself
    /// as a figure.
    ///
    ///     >>> import tapir
    ///     >>> print(tapir.Model.load("snips-small").trace("add step to me"))
    ///       t  action  policy  add  step           to              me
    ///       1  WRITE    0.000  O
    ///       2  WRITE    0.003  O    B-entity_name
    ///       3  WRITE    0.007  O    B-entity_name  O✗
    ///       4  REVISE   0.262  O    B-entity_name  ◆I-entity_name  ◇I-entity_name
    #[pyo3(signature = (what, *, threshold=None, mode=None))]
    fn trace(
        &self,
        py: Python<'_>,
        what: &Bound<'_, PyAny>,
        threshold: Option<f32>,
        mode: Option<String>,
    ) -> PyResult<Trace> {
        let options = Options { threshold, mode, ..Options::default() };
        Trace::of(py, &self.inner, what, &options)
    }

    /// Writes the model to a new directory.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(path)).map_err(refused)
    }

    /// The labels by id: the order of `Session.distribution`.
    #[getter]
    fn labels(&self, py: Python<'_>) -> Py<PyTuple> {
        self.names.clone_ref(py)
    }

    /// The name of the task that it was trained on.
    #[getter]
    fn task(&self) -> &str {
        &self.inner.config().task
    }

    /// The intents by id: the order of `Session.intent_distribution`; None if the model knows none.
    #[getter]
    fn intents<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let names = |intents: &Labels| PyTuple::new(py, intents.iter().map(|intent| &**intent));
        self.inner.intents().map(names).transpose()
    }

    /// How labels make spans: "iob", or "plain" where every word has a label of its own.
    #[getter]
    fn scheme(&self) -> &'static str {
        match self.inner.config().scheme {
            Scheme::Iob => "iob",
            Scheme::Plain => "plain",
        }
    }

    /// The policy's threshold, unless a session is given another.
    #[getter]
    fn threshold(&self) -> f32 {
        self.inner.config().threshold
    }

    /// A word is labelled when so many more have been read.
    #[getter]
    fn delay(&self) -> usize {
        self.inner.config().delay
    }

    /// How many words a revision reads at most.
    #[getter]
    fn max_length(&self) -> usize {
        self.inner.config().max_length
    }

    /// Which passes a session runs unless it is told otherwise.
    #[getter]
    fn mode(&self) -> &'static str {
        mode_name(self.inner.default_mode())
    }

    /// By name if it ships, else with all its files: a worker on another machine may lack the path.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let class = slf.get_type();
        if let Some(name) = &this.shipped {
            return Ok((class.getattr("_shipped")?, PyTuple::new(py, [name])?));
        }
        let parts = this.inner.parts();
        let files = PyDict::new(py);
        files.set_item("config", parts.config.to_json())?;
        files.set_item("labels", parts.labels.to_text())?;
        files.set_item("vocabulary", parts.vocabulary.to_text())?;
        files.set_item("intents", parts.intents.as_ref().map(Labels::to_text))?;
        files.set_item("pieces", parts.pieces.as_ref().map(WordPieces::to_text))?;
        files.set_item("weights", PyBytes::new(py, &parts.weights))?;
        // The vectors that ship are in every package.
        let vectors = parts.vocabulary.vectors();
        let own = vectors.filter(|vectors| {
            WordVectors::embedded().map_or(true, |shipped| **shipped.bytes() != **vectors.bytes())
        });
        files.set_item("open", vectors.is_some())?;
        files.set_item("vectors", own.map(|vectors| PyBytes::new(py, vectors.bytes())))?;
        Ok((class.getattr("_restore")?, PyTuple::new(py, [files])?))
    }

    /// For pickle: the model of that name in the package.
    #[staticmethod]
    fn _shipped(py: Python<'_>, name: String) -> PyResult<Self> {
        let model = py.detach(|| tapir::Model::embedded_named(&name)).map_err(refused)?;
        Self::new(py, model, Some(name))
    }

    /// For pickle: the model of these files.
    #[staticmethod]
    fn _restore(py: Python<'_>, files: &Bound<'_, PyDict>) -> PyResult<Self> {
        let file = |name: &str| {
            files.get_item(name)?.ok_or_else(|| error(format!("a pickled model lacks {name:?}")))
        };
        let text = |name: &str| file(name)?.extract::<String>();
        let config = Config::from_json(&text("config")?, "config.json").map_err(refused)?;
        let labels = Labels::from_text(&text("labels")?, "labels.txt").map_err(refused)?;
        let mut vocabulary =
            Vocabulary::from_text(&text("vocabulary")?, "vocab.txt").map_err(refused)?;
        if file("open")?.extract()? {
            let vectors = match file("vectors")?.extract::<Option<Vec<u8>>>()? {
                Some(bytes) => WordVectors::from_bytes(bytes, "the pickled word vectors"),
                None => WordVectors::embedded(),
            };
            vocabulary = vocabulary.with_vectors(Arc::new(vectors.map_err(refused)?));
        }
        let intents = file("intents")?.extract::<Option<String>>()?;
        let intents = intents.map(|text| Labels::from_text(&text, "intents.txt")).transpose();
        let intents = intents.map_err(refused)?;
        let pieces = file("pieces")?.extract::<Option<String>>()?;
        let pieces = pieces.map(|text| WordPieces::from_text(&text, "pieces.txt")).transpose();
        let pieces = pieces.map_err(refused)?;
        let weights = file("weights")?.extract::<Vec<u8>>()?.into();
        let parts = Parts { config, labels, intents, vocabulary, pieces, weights };
        let model = py.detach(|| parts.load()).map_err(refused)?;
        Self::new(py, model, None)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let config = self.inner.config();
        let name = self.shipped.as_deref().unwrap_or(&config.task);
        let threshold = match self.inner.default_mode() {
            tapir::Mode::TwoPass => format!(", threshold {}", config.threshold),
            _ => String::new(),
        };
        Ok(format!(
            "<tapir.Model {}: {} labels, {}{threshold}>",
            quoted(py, name)?,
            self.inner.labels().len(),
            self.mode()
        ))
    }
}
