//! `tapir calibrate`: how far a model's answers can be trusted, fitted on validation.

use anyhow::{Result, bail};
use clap::Args;
use tapir_data::Split;
use tapir_eval::{StabilityScores, calibrate};

use crate::measure::{Subject, other_text};
use crate::terminal::print;

/// Fit how far a model's answers can be trusted: will a label, span or intent still change, and is an
/// utterance for the model at all?
#[derive(Args)]
#[command(after_help = "Examples:
  tapir calibrate runs/snips snips
  tapir calibrate runs/snips snips --outside english --outside alarms --outside my-other-text.txt

Training ends with it. It is to be done again for another threshold, which changes when labels
change.")]
pub(crate) struct Calibrate {
    #[command(flatten)]
    subject: Subject,
    /// Text of other domains that the model has not learnt from, a sentence per line: a file, or a
    /// text that ships (alarms, english, requests)
    #[arg(long, value_name = "FILE|NAME")]
    outside: Vec<String>,
}

impl Calibrate {
    pub(crate) fn run(mut self) -> Result<()> {
        match self.subject.part.split {
            None => self.subject.part.split = Some(Split::Valid),
            Some(Split::Test) => {
                bail!("what is fitted on the test split would look too good there; leave it out")
            }
            Some(_) => {}
        }
        let (model, dataset, folder) = self.subject.open()?;
        self.subject.part.warn_of_training(&model);
        let outside: Vec<Vec<String>> = self
            .outside
            .iter()
            .map(|name| other_text(&model, name))
            .collect::<Result<Vec<_>>>()?
            .concat();
        let mut calibration = calibrate(&model, &dataset, &outside)?;
        if outside.is_empty() {
            // There is nothing to fit it on, so that it stays.
            calibration.in_domain = model.config().calibration.in_domain;
        }
        tapir::amend(&folder, |config| config.calibration = calibration)?;
        let model = tapir::Model::open(&folder)?;
        let scores = StabilityScores::of(&model, &dataset)?;
        let tables = scores.iter().flat_map(StabilityScores::tables);
        let mut blocks: Vec<String> = tables.map(|table| table.to_text()).collect();
        blocks.push(format!("{}: calibrated on {}\n", folder.display(), dataset.split));
        print(&blocks.join("\n"))
    }
}
