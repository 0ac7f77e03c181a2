//! Python's side of long work: a progress bar, and Ctrl-C.

use std::time::Duration;

use pyo3::prelude::*;

/// How often Python is asked: a person does not notice, and the work neither.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// A bar, unless none is wanted.
pub(crate) struct Watch {
    bar: Option<Py<PyAny>>,
}

impl Watch {
    /// Of so many pieces of work. `progress` is what the user said of a bar: None leaves it to
    /// `tapir/_progress.py`.
    pub(crate) fn new(
        py: Python<'_>,
        what: &str,
        total: usize,
        progress: Option<bool>,
    ) -> PyResult<Self> {
        let bar = py.import("tapir._progress")?.call_method1("start", (what, total, progress))?;
        Ok(Self { bar: (!bar.is_none()).then(|| bar.unbind()) })
    }

    /// Shows how much is done; an exception if the user has pressed Ctrl-C.
    pub(crate) fn look(&self, py: Python<'_>, done: usize) -> PyResult<()> {
        py.check_signals()?;
        self.bar.as_ref().map_or(Ok(()), |bar| bar.call_method1(py, "show", (done,)).map(|_| ()))
    }

    /// Takes the bar away, whatever became of the work.
    pub(crate) fn close<T>(self, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
        if let Some(bar) = &self.bar {
            bar.call_method0(py, "close")?;
        }
        result
    }
}
