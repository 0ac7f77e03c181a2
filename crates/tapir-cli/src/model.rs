//! Which model a command runs, and how: flags that several commands share.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use tapir::{Model, SessionOptions};

/// The model that is meant where none is named.
pub(crate) const DEFAULT_MODEL: &str = "snips";

/// Which model to run, and how eagerly it revises.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// A model that ships (snips, snips-small, pos), a training run, or the directory of a model
    /// [default: snips]
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
    // What --model was called for models that ship; a task is a corpus now.
    #[arg(long, hide = true, conflicts_with = "model",
        value_parser = PossibleValuesParser::new(Model::embedded_names()))]
    task: Option<String>,
    /// Revise when the policy value reaches this: 0 at every word, 1 never [default: the model's
    /// own]
    #[arg(long, value_parser = threshold)]
    threshold: Option<f32>,
    /// Say what is settled: the labels, spans and intent that will stay as they are with this
    /// probability, such as 0.95. The model must be calibrated
    #[arg(long, value_name = "PROBABILITY", value_parser = threshold)]
    settled: Option<f32>,
}

impl Choice {
    pub(crate) fn open(&self) -> Result<Model> {
        Ok(match (&self.model, &self.task) {
            (Some(model), _) => Model::find(model)?,
            (None, Some(name)) => Model::embedded_named(name)?,
            (None, None) => Model::embedded()?,
        })
    }

    /// What the model is called: its name, or its directory.
    #[cfg(any(feature = "eval", feature = "live"))]
    pub(crate) fn name(&self) -> String {
        match (&self.model, &self.task) {
            (Some(model), _) => model.display().to_string(),
            (None, Some(name)) => name.clone(),
            (None, None) => DEFAULT_MODEL.to_owned(),
        }
    }

    /// The threshold that was asked for.
    #[cfg(feature = "live")]
    pub(crate) fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    /// The options of a session that runs so.
    pub(crate) fn session_options(&self) -> SessionOptions {
        let options = SessionOptions::new();
        let options = self.threshold.map_or(options, |threshold| options.threshold(threshold));
        self.settled.map_or(options, |settled| options.settled(settled))
    }
}

/// A threshold as an argument.
pub(crate) fn threshold(text: &str) -> Result<f32, String> {
    let value = text.parse::<f32>().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
