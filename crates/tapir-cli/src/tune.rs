//! `tapir tune`: search for hyperparameters.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use tapir_train::{Trial, TuneEvent, TuneOptions, tune};

use crate::train::Screen;

/// Search for the best sizes and rates of a preset, as the paper does
///
/// First the reviser, then with the best one the incremental processor and the controller: layers,
/// sizes, learning rate, batch and clipping from the paper's search spaces, chosen by
/// tree-structured Parzen estimation, judged on the validation split. A trial that is behind the
/// median of the others is ended early. Stop it at any moment: the next call goes on with the same
/// trial. The best preset is in OUT/best.toml; every trial keeps its folder.
///
/// Examples:
///   tapir tune small/snips
///   tapir tune small/snips --trials 10 --epochs 6 --out runs/tuned
///   tapir train runs/tuned/best.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Tune {
    #[command(flatten)]
    recipe: crate::recipe::Recipe,
    /// Trials of each of the two searches, those of earlier calls included
    #[arg(long, default_value_t = 25)]
    trials: usize,
    /// At most so many epochs, in every trial
    #[arg(long)]
    epochs: Option<usize>,
    /// Search only keys that contain this, such as learning_rate; can be given several times
    #[arg(long, value_name = "KEY")]
    only: Vec<String>,
    /// Print the trials as JSON
    #[arg(long)]
    json: bool,
}

impl Tune {
    pub(crate) fn run(self) -> Result<()> {
        let run = self.recipe.options_for("-tuned");
        let best = run.out.join("best.toml");
        let open = |settings: &[String]| {
            let preset = self.recipe.open(settings.to_vec())?;
            match self.epochs {
                Some(epochs) => preset.with_epochs(epochs),
                None => Ok(preset),
            }
        };
        let mut screen = Screen::new();
        let options = TuneOptions { trials: self.trials, only: self.only.clone(), run };
        let trials = tune(&open, &options, &mut |event| match event {
            TuneEvent::Trial(stage, number, settings) => {
                eprintln!(
                    "{} trial {number}/{}: {}",
                    stage.name(),
                    self.trials,
                    settings.join(" ")
                );
            }
            TuneEvent::Train(event) => screen.show(event),
            TuneEvent::Ended(trial) => eprintln!("{}", line(trial)),
        })?;
        let mut out = std::io::stdout();
        if self.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&trials)?)?;
        } else {
            trials.iter().try_for_each(|trial| writeln!(out, "{}", line(trial)))?;
            writeln!(out, "best preset: {}", best.display())?;
        }
        Ok(())
    }
}

fn line(trial: &Trial) -> String {
    let score = trial.score.map_or("pruned".to_owned(), |score| format!("{score:6.2}"));
    format!("{:10} {:3}  {score}  {}", trial.stage.name(), trial.number, trial.settings.join(" "))
}
