//! What a user may give: texts, words, names of modes.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyString};
use tapir::{FinalPass, Mode, SessionOptions};
use tapir_eval::Setting;

use crate::error::{error, refused};

/// Something to label.
pub(crate) enum Given {
    /// A text, of which the model's tokenizer makes words.
    Text(String),
    /// Words, taken as they are.
    Words(Vec<String>),
}

impl Given {
    /// A text, or any iterable of words.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self::Text(text.to_str()?.to_owned()));
        }
        Ok(Self::Words(words(value)?))
    }

    /// The words that a model reads.
    pub(crate) fn words(self, model: &tapir::Model) -> Vec<String> {
        match self {
            Self::Text(text) => model.config().tokenizer.words(&text),
            Self::Words(words) => words,
        }
    }
}

/// How sure a recogniser is that its words stay: of all alike, or of each.
pub(crate) enum Stability {
    All(f32),
    Each(Vec<f32>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Stability {
    type Error = PyErr;

    /// A number, or any iterable of them: arrays of numpy are no sequences to Python.
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.try_iter() {
            Ok(items) => items.map(|item| item?.extract()).collect::<PyResult<_>>().map(Self::Each),
            Err(_) => value.extract().map(Self::All),
        }
    }
}

impl Stability {
    /// Words with what is said of each of them.
    pub(crate) fn of(self, words: Vec<String>) -> PyResult<Vec<(String, f32)>> {
        let stability = match self {
            Self::All(stability) => tapir::protocol::Stability::All(stability),
            Self::Each(stabilities) => tapir::protocol::Stability::Each(stabilities),
        };
        let stabilities = stability.each(words.len()).map_err(refused)?;
        Ok(words.into_iter().zip(stabilities).collect())
    }
}

/// The words of any iterable of them but a text, whose elements would be letters.
pub(crate) fn words(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let wrong = || {
        let name =
            value.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("expected a text or a list of words, not {name}"))
    };
    if misleads(value) {
        return Err(wrong());
    }
    let items = value.try_iter().map_err(|_| wrong())?;
    items.map(|item| text(&item?)).collect()
}

/// Has it items that are not what somebody who gives it wants labelled? Those of bytes are numbers;
/// those of a mapping, or of a table of pandas, are the names of its columns.
pub(crate) fn misleads(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>()
        || value.cast::<PyMapping>().is_ok()
        || value.hasattr(intern!(value.py(), "columns")).unwrap_or(false)
}

/// A text, or an exception that says what was given instead.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.cast::<PyString>().map_err(|_| {
        let name =
            value.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("a word is a str, not {name}"))
    })?;
    Ok(text.to_str()?.to_owned())
}

/// How a session runs, as the keywords of `Model.session` say it.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) threshold: Option<f32>,
    pub(crate) undo: Option<usize>,
    pub(crate) window: Option<usize>,
    pub(crate) mode: Option<String>,
    pub(crate) final_pass: Option<bool>,
    pub(crate) settled: Option<f32>,
}

impl Options {
    /// The same for the library.
    pub(crate) fn build(&self) -> PyResult<SessionOptions> {
        let mut options = SessionOptions::new();
        if let Some(threshold) = self.threshold {
            options = options.threshold(threshold);
        }
        if let Some(undo) = self.undo {
            options = options.undo(undo);
        }
        if let Some(window) = self.window {
            options = options.window(window);
        }
        if let Some(mode) = self.mode()? {
            options = options.mode(mode);
        }
        if self.final_pass == Some(false) {
            options = options.final_pass(FinalPass::Policy);
        }
        if let Some(settled) = self.settled {
            options = options.settled(settled);
        }
        Ok(options)
    }

    /// The same for a measurement: threshold and mode.
    pub(crate) fn setting(&self, model: &tapir::Model) -> PyResult<Setting> {
        self.build()?.check(model).map_err(error)?;
        let mut setting = Setting::of(model);
        if let Some(threshold) = self.threshold {
            setting = setting.threshold(threshold);
        }
        if let Some(mode) = self.mode()? {
            setting = setting.mode(mode);
        }
        Ok(setting)
    }

    /// The passes that were asked for.
    pub(crate) fn mode(&self) -> PyResult<Option<Mode>> {
        self.mode.as_deref().map(mode).transpose()
    }
}

/// The mode of that name.
fn mode(name: &str) -> PyResult<Mode> {
    [Mode::TwoPass, Mode::Restart, Mode::FirstPass]
        .into_iter()
        .find(|mode| mode_name(*mode) == name)
        .ok_or_else(|| {
            error(format!("mode {name:?}: expected \"two-pass\", \"restart\" or \"first-pass\""))
        })
}

/// What a mode is called.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::TwoPass => "two-pass",
        Mode::Restart => "restart",
        Mode::FirstPass => "first-pass",
    }
}
