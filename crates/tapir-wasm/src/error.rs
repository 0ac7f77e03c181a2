//! What went wrong, as an exception of JavaScript.

use wasm_bindgen::prelude::*;

/// A result whose error is thrown.
pub(crate) type Result<T, E = JsValue> = std::result::Result<T, E>;

/// An `Error` with a message.
pub(crate) fn error(message: impl ToString) -> JsValue {
    js_sys::Error::new(&message.to_string()).into()
}

/// A `TypeError`: something else was expected.
pub(crate) fn type_error(message: impl ToString) -> JsValue {
    js_sys::TypeError::new(&message.to_string()).into()
}

/// What the library refuses, in the names that JavaScript has for its options.
pub(crate) fn refused(error_: tapir::Error) -> JsValue {
    match error_ {
        tapir::Error::Undo { asked, available } => error(format!(
            "{asked} words cannot be taken back: {available} can (see `undo` of `Model.session`); \
             nothing was changed"
        )),
        other => error(other),
    }
}
