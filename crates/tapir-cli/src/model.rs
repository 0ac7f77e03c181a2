//! Which model a command runs, and how: flags that several commands share.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use tapir::{Model, SessionOptions};

/// Which model to run, and how eagerly it revises.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// The model directory; without it, the model that ships with the program
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Which of the models that ship with the program [default: snips]
    #[arg(long, conflicts_with = "model", value_parser = PossibleValuesParser::new(Model::embedded_tasks()))]
    task: Option<String>,
    /// Revise when the policy value reaches this: 0 at every word, 1 never [default: the model's own]
    #[arg(long, value_parser = crate::eval::threshold)]
    threshold: Option<f32>,
}

impl Choice {
    pub(crate) fn open(&self) -> Result<Model> {
        Ok(match (&self.model, &self.task) {
            (Some(dir), _) => Model::open(dir)?,
            (None, Some(task)) => Model::embedded_for(task)?,
            (None, None) => Model::embedded()?,
        })
    }

    /// The threshold that was asked for.
    pub(crate) fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    /// The options of a session with that threshold.
    pub(crate) fn session_options(&self) -> SessionOptions {
        let options = SessionOptions::new();
        self.threshold.map_or(options, |threshold| options.threshold(threshold))
    }
}
