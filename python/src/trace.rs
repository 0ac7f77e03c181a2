//! A sentence as a model reads it: the figure of `tapir trace`.

use pyo3::prelude::*;
use tapir_data::Sentence;
use tapir_eval::{Dataset, Record};

use crate::error::error;
use crate::input::{Given, Options};

/// How a model read a sentence: a row per word, edited labels marked. `Model.trace` makes one.
///
/// A label with ◆ was changed by the step, ◇ marks a newest word on which the revision overruled
/// the first pass, ✗ a label that differs from the final output. In a notebook it is a figure.
#[pyclass(frozen, eq, module = "tapir")]
#[derive(PartialEq)]
pub(crate) struct Trace(tapir_eval::Trace);

impl Trace {
    /// Reads a text or words.
    pub(crate) fn of(
        py: Python<'_>,
        model: &tapir::Model,
        what: &Bound<'_, PyAny>,
        options: &Options,
    ) -> PyResult<Self> {
        let setting = options.setting(model)?;
        let words = Given::of(what)?.words(model);
        if words.is_empty() {
            return Err(error("there are no words to trace"));
        }
        // A text of the user's own has no gold labels: any that the model knows will do.
        let gold = vec![model.labels().get(0).to_string(); words.len()];
        py.detach(|| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(error)?;
            let dataset = Dataset::of(model, &[Sentence::new(words, gold)]).map_err(error)?;
            let record = pool.install(|| Record::make(model, &dataset, setting, || ()));
            let record = record.map_err(error)?;
            let trace = tapir_eval::Trace::of(&dataset, &record, 0, false);
            trace
                .map(|trace| Self(tapir_eval::Trace { sentence: 0, ..trace }))
                .ok_or_else(|| error("there is no such sentence"))
        })
    }
}

#[pymethods]
impl Trace {
    /// The words.
    #[getter]
    fn words(&self) -> Vec<&str> {
        self.0.words.iter().map(String::as_str).collect()
    }

    /// How many labels were changed after they were given.
    #[getter]
    fn edits(&self) -> usize {
        self.0.edits()
    }

    /// A table, at most so many columns wide.
    #[pyo3(signature = (width=100))]
    fn to_text(&self, width: usize) -> String {
        self.0.to_text(width, false)
    }

    /// A figure.
    fn to_svg(&self) -> String {
        self.0.to_svg(true)
    }

    /// A page of its own.
    fn to_html(&self) -> String {
        self.0.to_html()
    }

    /// All steps, for programs: `words` and `steps`, each with `action`, `policy` and `cells`.
    ///
    ///     >>> import tapir
    ///     >>> trace = tapir.Model.load("snips-small").trace("add step to me").to_dict()
    ///     >>> trace["steps"][3]["cells"][2]["old"]
    ///     'O'
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_string(&self.0).map_err(error)?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// For a notebook. A picture, since a figure in the page would bring its style to the page.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let svg = self.to_svg();
        let code = py.import("base64")?.call_method1("b64encode", (svg.as_bytes(),))?;
        let code: String = code.call_method1("decode", ("ascii",))?.extract()?;
        Ok(format!(
            "<img alt=\"labels at every step\" style=\"max-width:none\" \
             src=\"data:image/svg+xml;base64,{code}\">"
        ))
    }

    /// For pickle: a trace from its JSON.
    #[staticmethod]
    fn _restore(json: &str) -> PyResult<Self> {
        serde_json::from_str(json).map(Self).map_err(error)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let json = serde_json::to_string(&slf.get().0).map_err(error)?;
        Ok((slf.get_type().getattr("_restore")?, (json,)))
    }

    fn __str__(&self) -> String {
        self.to_text(100).trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        let (words, edits) = (self.0.words.join(" "), self.0.edits());
        format!("<tapir.Trace of {words:?}: {edits} edits; print it>")
    }
}
