//! `tapir check`: how a model behaves on everyday text.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tapir_data::write_atomically;
use tapir_eval::Behaviour;

use crate::measure::provenance;
use crate::terminal::print;

/// Check how a model behaves: capitals, punctuation, politeness, numbers, typos, other domains
///
/// Reads tests in the manner of CheckList from a file of three columns: kind, sentence,
/// expectation. Without a file it runs the ones that ship, which are about the slots of SNIPS.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir check
  tapir check --failures
  tapir check my-tests.tsv --model runs/shop

A line of a file of tests, apart by tabs; an expectation is a list of spans; or none; or = a
sentence that must be answered alike; or outside: no span, or said to be not for the model:
  numbers  two pounds of apples  quantity: two pounds; item: apples
  casing   Two Pounds of APPLES  = two pounds of apples
  other    what time is it       outside")]
pub(crate) struct Check {
    /// A file of tests [default: those that ship]
    tests: Option<PathBuf>,
    #[command(flatten)]
    model: crate::model::Choice,
    /// Show every test that failed
    #[arg(long)]
    failures: bool,
    /// Write the results to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Check {
    pub(crate) fn run(self) -> Result<()> {
        let since = Instant::now();
        let mut provenance = provenance();
        let model = self.model.open()?;
        let tests = match &self.tests {
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
                Behaviour::parse(&text, &path.display().to_string())?
            }
            None => Behaviour::parse(tapir_models::CHALLENGE, "the tests that ship")?,
        };
        let results = tests.run(&model)?;
        if let Some(path) = &self.output {
            provenance.ended(since);
            let model = self.model.name();
            let json = json!({ "provenance": provenance, "model": model, "behaviour": results });
            write_atomically(path, (serde_json::to_string_pretty(&json)? + "\n").as_bytes())?;
        }
        print(&results.table().to_text())?;
        let shown = if self.failures { results.failures.as_slice() } else { &[] };
        shown.iter().try_for_each(|failure| print(&format!("\n{failure}\n")))
    }
}
