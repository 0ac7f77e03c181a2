//! Training, where the package was built with it: the feature `train`, which brings burn.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Instant;

use pyo3::prelude::*;
use tapir_train::{Event, Preset, RunOptions};

use crate::error::error;
use crate::watch::PATIENCE;

/// Trains a model; see `tapir/training.py`. Gives what was made, as JSON.
#[pyfunction]
#[pyo3(signature = (preset, out, settings, data=None, epochs=None, show=None))]
pub(crate) fn train(
    py: Python<'_>,
    preset: &str,
    out: PathBuf,
    settings: Vec<String>,
    data: Option<PathBuf>,
    epochs: Option<usize>,
    show: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut preset = Preset::open(preset, &settings).map_err(error)?;
    if let Some(epochs) = epochs {
        preset = preset.with_epochs(epochs).map_err(error)?;
    }
    let options = RunOptions { data, ..RunOptions::new(out) };
    let mut last = Instant::now();
    let mut on_event = |event: Event| {
        let line = line(&event);
        if line.is_some() || last.elapsed() > PATIENCE {
            last = Instant::now();
            let said = Python::attach(|py| {
                py.check_signals()?;
                match (&show, line) {
                    (Some(show), Some(line)) => show.call1(py, (line,)).map(|_| ()),
                    _ => Ok(()),
                }
            });
            if let Err(exception) = said {
                // To break would end the stage as if it were done. This leaves it as a killed
                // process does: the next call goes on from the last checkpoint.
                resume_unwind(Box::new(exception));
            }
        }
        ControlFlow::Continue(())
    };
    let result = py.detach(|| {
        let run = || tapir_train::train(&preset, &options, &mut on_event);
        catch_unwind(AssertUnwindSafe(run))
    });
    let run = match result {
        Ok(run) => run.map_err(error)?,
        Err(panic) => match panic.downcast::<PyErr>() {
            Ok(exception) => return Err(*exception),
            Err(panic) => resume_unwind(panic),
        },
    };
    serde_json::to_string(&run).map_err(error)
}

/// What an event says to a person, if it says something: stages and epochs.
fn line(event: &Event) -> Option<String> {
    match event {
        Event::Skipped(stage) => Some(format!("{}: done before, skipped", stage.name())),
        Event::Started(stage, sentences) => {
            Some(format!("{}: {sentences} sentences", stage.name()))
        }
        Event::Progress(progress) => progress.score.map(|score| {
            let (part, epoch, epochs) = (&progress.part, progress.epoch, progress.epochs);
            format!(
                "{part}: epoch {epoch} of {epochs}, loss {:.4}, score {score:.2}",
                progress.loss
            )
        }),
        Event::Lessons { read, sentences, .. } => {
            (read == sentences).then(|| format!("lessons of the reviser: {sentences} sentences"))
        }
        Event::Actions(stats) => Some(format!("actions:\n{stats}")),
        Event::Finished(_) => None,
    }
}
