//! `tapir actions`: WRITE and REVISE for a corpus, with the paper's statistics.

use anyhow::Result;
use clap::Args;
use tapir_train::{Event, RunOptions, StageName, train};

/// Derive the actions that a policy learns: train the generator if need be, then write word, label and action
///
/// They are in OUT/actions.tsv, a line a word. `tapir train` uses them from there.
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
        train(&preset, &options, &mut |event| match event {
            Event::Skipped(stage) => eprintln!("{}: done before, skipped", stage.name()),
            Event::Started(stage, sentences) => eprintln!("{}: {sentences} sentences", stage.name()),
            Event::Progress(progress) if progress.score.is_some() => {
                eprintln!("epoch {}/{}  loss {:.4}", progress.epoch, progress.epochs, progress.loss);
            }
            Event::Actions(stats) => print!("{stats}"),
            _ => {}
        })?;
        println!("actions: {}", options.out.join("actions.tsv").display());
        Ok(())
    }
}
