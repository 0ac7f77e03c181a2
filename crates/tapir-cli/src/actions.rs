//! `tapir actions`: WRITE and REVISE for a corpus, with the paper's statistics.

use std::io::Write;
use std::ops::ControlFlow;

use anyhow::Result;
use clap::Args;
use tapir_train::{Event, RunOptions, StageName, train};

/// Derive the actions that a policy learns: train the generator if need be, then write word, label
/// and action
///
/// They are in OUT/actions.tsv, a line per word. `tapir train` uses them from there.
#[derive(Args)]
pub(crate) struct Actions {
    #[command(flatten)]
    recipe: crate::recipe::Recipe,
}

impl Actions {
    pub(crate) fn run(self) -> Result<()> {
        let preset = self.recipe.open(Vec::new())?;
        let stages = Some(vec![StageName::Generator, StageName::Actions]);
        let options = RunOptions { stages, ..self.recipe.options() };
        let mut out = std::io::stdout();
        let mut screen = crate::train::Screen::new();
        train(&preset, &options, &mut |event| {
            match event {
                // A reader that has gone away ends the work no sooner than the file is written.
                Event::Actions(stats) => _ = write!(out, "{stats}"),
                other => screen.show(other),
            }
            ControlFlow::Continue(())
        })?;
        writeln!(out, "actions: {}", options.out.join("actions.tsv").display())?;
        Ok(())
    }
}
