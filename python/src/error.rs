//! What went wrong, as a Python exception with the message of the library.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;

create_exception!(
    tapir,
    Error,
    PyValueError,
    "What tapir cannot do, and why: a model that is not there, a word that cannot be taken back, a \
     threshold that is none. The message says what to do."
);

/// An exception from anything that prints.
pub(crate) fn error(message: impl ToString) -> PyErr {
    Error::new_err(message.to_string())
}

/// What the library says of its options, in the names that Python has for them.
pub(crate) fn refused(error_: tapir::Error) -> PyErr {
    match error_ {
        tapir::Error::Undo { asked, available } => error(format!(
            "{asked} words cannot be taken back: {available} can (see `undo` of `Model.session`); \
             nothing was changed"
        )),
        other => error(other),
    }
}
