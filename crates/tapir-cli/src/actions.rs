//! `tapir actions`: WRITE and REVISE for a corpus, with the paper's statistics.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tapir_train::{Event, Preset, RunOptions, StageName, train};

/// Derive the actions that a policy learns: train the generator if need be, then write word, label and action
///
/// They are in OUT/actions.tsv, a line a word. `tapir train` uses them from there.
#[derive(Args)]
pub(crate) struct Actions {
    /// A preset that ships (small/snips) or the path of a preset file
    preset: String,
    /// Set a value of the preset; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The folder of the corpus, or one that holds it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the generator and the actions go [default: runs/PRESET]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Actions {
    pub(crate) fn run(self) -> Result<()> {
        let preset = Preset::open(&self.preset, &self.settings)?;
        let name = self.preset.trim_end_matches(".toml").replace('/', "-");
        let out = self.out.unwrap_or_else(|| PathBuf::from("runs").join(name));
        let options = RunOptions {
            data: self.data,
            stages: Some(vec![StageName::Generator, StageName::Actions]),
            ..RunOptions::new(&out)
        };
        train(&preset, &options, &mut |event| match event {
            Event::Skipped(stage) => eprintln!("{}: done before, skipped", stage.name()),
            Event::Started(stage, sentences) => eprintln!("{}: {sentences} sentences", stage.name()),
            Event::Progress(progress) if progress.score.is_some() => {
                eprintln!("epoch {}/{}  loss {:.4}", progress.epoch, progress.epochs, progress.loss);
            }
            Event::Actions(stats) => print!("{stats}"),
            _ => {}
        })?;
        println!("actions: {}", out.join("actions.tsv").display());
        Ok(())
    }
}
