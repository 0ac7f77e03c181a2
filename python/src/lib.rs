//! The Python package of tapir. This crate is thin: it turns Python's values into those of the
//! crate `tapir`, and answers into Python's; `tapir/` beside it holds what is better said in Python.
//!
//! Doc comments of classes and methods are Python's docstrings, and their examples run in
//! `tests/test_docstrings.py`.

mod corpus;
mod error;
mod evaluate;
mod input;
mod model;
mod session;
mod tag;
mod tagged;
mod trace;
#[cfg(feature = "train")]
mod train;
mod update;
mod watch;

/// What `tapir/__init__.py` shows.
#[pyo3::pymodule]
mod _tapir {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::corpus::load_corpus;
    #[pymodule_export]
    use crate::evaluate::{evaluate, sweep};
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::tagged::Tagged;
    #[pymodule_export]
    use crate::trace::Trace;
    #[cfg(feature = "train")]
    #[pymodule_export]
    use crate::train::train;
    #[pymodule_export]
    use crate::update::{Edit, Finish, Intent, Settled, Span, Update, spans};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Error", module.py().get_type::<crate::error::Error>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
