//! `tapir sweep`: every threshold in one pass over the data, and the choice of one.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use tapir_data::{Split, write_atomically};
use tapir_eval::{Constraint, Sweep as Table, fine_thresholds, sweep, thresholds};

use crate::measure::{Output, Subject, heading, progress, results};
use crate::model::threshold;

/// Measure every threshold from 0 (revise at every word) to 1 (never), and choose one
#[derive(Args)]
#[command(after_help = "Examples:
  tapir sweep runs/snips snips --plot snips.svg
  tapir sweep runs/snips snips --choose within=0.5       # F1 within 0.5 of the better pass, fewest revisions
  tapir sweep runs/snips snips --choose revisions=0.1    # at most one revision in ten words, best F1")]
pub(crate) struct Sweep {
    #[command(flatten)]
    subject: Subject,
    /// The thresholds, joined by commas [default: 0 to 1 in steps of 0.1; with --choose of 0.05, and
    /// 0.02]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threshold)]
    thresholds: Vec<f32>,
    /// Choose the best threshold on the validation split under a constraint, and make it the
    /// model's default
    #[arg(long, value_name = "CONSTRAINT")]
    choose: Option<Constraint>,
    /// With --choose: leave the model as it is
    #[arg(long, requires = "choose")]
    dry_run: bool,
    /// Write a plot of the metrics by threshold, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Sweep {
    pub(crate) fn run(mut self) -> Result<()> {
        if self.choose.is_some() {
            match self.subject.part.split {
                None => self.subject.part.split = Some(Split::Valid),
                Some(Split::Test) => {
                    bail!(
                        "a threshold chosen on the test split would score too well on it; leave out --split test"
                    )
                }
                Some(_) => {}
            }
        }
        let (model, dataset, folder) = self.subject.open()?;
        if self.choose.is_some() {
            self.subject.part.warn_of_training(&model);
        }
        let since = Instant::now();
        let list = match (self.thresholds.is_empty(), self.choose.is_some()) {
            (false, _) => self.thresholds,
            (true, true) => fine_thresholds(),
            (true, false) => thresholds(),
        };
        let bar = progress("sweeping", dataset.examples.len());
        let records = sweep(&model, &dataset, &list, || bar.inc(1))?;
        bar.finish_and_clear();
        let table = Table::of(&model, &dataset, &records);
        let mut results = results(&folder, &model, &dataset);
        if let Some(constraint) = self.choose {
            results.choice = Some(constraint.choose(&table)?);
        }
        if let Some(path) = &self.plot {
            let title = format!("{} on {} {}", results.model.title(), results.task, results.split);
            write_atomically(path, table.to_svg(&title).as_bytes())?;
        }
        results.sweep = Some(table);
        if let (Some(choice), false) = (&results.choice, self.dry_run) {
            choice.write(&folder)?;
        }
        self.output.finish(&mut results, since, |results| {
            let mut blocks = vec![heading(results, dataset.examples.len(), dataset.words())];
            blocks.extend(results.sweep.as_ref().map(|sweep| sweep.table().to_text()));
            if let Some(choice) = &results.choice {
                let written = if self.dry_run {
                    "the model is left as it is".to_owned()
                } else {
                    format!("{}: this is its default now", folder.display())
                };
                blocks.push(format!("chosen: {choice}\n{written}\n"));
            }
            blocks
        })
    }
}
