//! `tapir analyze`: what the policy does, of what kind its revisions are, how far the passes agree,
//! and where the time goes.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use tapir::Mode;
use tapir_eval::{Analysis, Record, RevisionQuality, Setting};

use crate::measure::{Output, Subject, heading, progress, results};
use crate::model::threshold;

/// Show what the policy does, whether it is right to, of what kind its revisions are, how far the
/// two passes agree, and where the time goes
#[derive(Args)]
#[command(after_help = "Examples:
  tapir analyze runs/snips snips
  tapir analyze runs/snips snips -o results/snips-analysis.json")]
pub(crate) struct Analyze {
    #[command(flatten)]
    subject: Subject,
    /// The threshold of the policy [default: the model's]
    #[arg(long, value_parser = threshold)]
    threshold: Option<f32>,
    #[command(flatten)]
    output: Output,
}

impl Analyze {
    pub(crate) fn run(self) -> Result<()> {
        let (model, dataset, folder) = self.subject.open()?;
        let since = Instant::now();
        let mut setting = Setting::of(&model).mode(Mode::TwoPass);
        if let Some(threshold) = self.threshold {
            setting = setting.threshold(threshold);
        }
        let bar = progress("analysing", 2 * dataset.examples.len());
        let record = Record::make(&model, &dataset, setting, || bar.inc(1))?;
        let analysis = Analysis::of(&model, &dataset, &record, || bar.inc(1))?;
        bar.finish_and_clear();
        let mut results = results(&folder, &model, &dataset);
        results.analysis = Some(analysis);
        self.output.finish(&mut results, since, |results| {
            let mut blocks = vec![heading(results, dataset.examples.len(), dataset.words())];
            if let Some(analysis) = &results.analysis {
                let key = "actions (R: REVISE, W: WRITE) and prefixes (C: as in the final output, I: not)\n";
                blocks.push(key.to_owned() + &analysis.policy_table().to_text());
                if let Some(revisions) = &analysis.revisions {
                    let RevisionQuality { steps, revisions: count, edits, .. } = revisions.silver;
                    let key = format!(
                        "revisions (R: steps that changed an earlier label; A: other steps, additions): \
                         {count} of {steps} steps, {edits} labels\n"
                    );
                    blocks.push(key + &revisions.quality_table().to_text());
                    blocks.push(revisions.kind_table().to_text());
                }
                let words = format!("words with the same label: {:.1} %\n", 100.0 * analysis.agreement.words);
                blocks.push(analysis.agreement_table().to_text() + &words);
                blocks.push(analysis.time_table().to_text());
            }
            blocks
        })
    }
}
