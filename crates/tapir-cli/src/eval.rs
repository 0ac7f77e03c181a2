//! `tapir eval`: scores, incremental metrics, actions and revisions of a model.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use tapir::Mode;
use tapir_data::write_atomically;
use tapir_eval::{
    Against, Evaluation, InDomainScores, ModelInfo, Record, Setting, StabilityScores,
};

use crate::measure::{Output, Subject, heading, other_text, progress, results};

/// Measure a model word by word: scores, edit overhead, correction time, relative correctness,
/// actions, quality of revisions, cost
#[derive(Args)]
#[command(after_help = "Examples:
  tapir eval runs/snips snips
  tapir eval runs/snips snips --threshold 0.3 --reference -o results/snips-trf/eval.json
  tapir eval runs/snips-int8 snips --against runs/snips --keep
  tapir eval runs/mine my-task.toml --split valid --json")]
pub(crate) struct Eval {
    #[command(flatten)]
    subject: Subject,
    /// The threshold of the policy, 0 (revise at every word) to 1 (never) [default: the model's]
    #[arg(long, value_parser = crate::model::threshold)]
    threshold: Option<f32>,
    /// Measure the reference too: the reviser run anew at every word
    #[arg(long)]
    reference: bool,
    /// Compare the labels with those of another model, such as the same one in f32
    #[arg(long, value_name = "MODEL")]
    against: Option<PathBuf>,
    /// Text of other domains, a sentence per line, a file or a text that ships (alarms, english,
    /// requests): measure whether the model knows that it is not for it
    #[arg(long, value_name = "FILE|NAME")]
    outside: Vec<String>,
    /// Note the scores in the model's config.json, for whoever is given the model
    #[arg(long)]
    keep: bool,
    /// Show precision, recall and F1 of every label
    #[arg(long)]
    by_label: bool,
    /// Write every output, action and policy value to this file, as JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Eval {
    pub(crate) fn run(self) -> Result<()> {
        let (model, dataset, folder) = self.subject.open()?;
        let since = Instant::now();
        let mut setting = Setting::of(&model);
        if let Some(threshold) = self.threshold {
            setting = setting.threshold(threshold);
        }
        let measure = |setting: Setting, what: &'static str| -> Result<(Record, Evaluation)> {
            let bar = progress(what, dataset.examples.len());
            let record = Record::make(&model, &dataset, setting, || bar.inc(1))?;
            bar.finish_and_clear();
            let evaluation = Evaluation::of(&model, &dataset, &record);
            Ok((record, evaluation))
        };
        let mut results = results(&folder, &model, &dataset);
        let (record, evaluation) = measure(setting, "evaluating")?;
        results.evaluation = Some(evaluation);
        if self.reference {
            results.reference = Some(measure(setting.mode(Mode::Restart), "reference")?.1);
        }
        if self.threshold.is_none() {
            results.stability = StabilityScores::of(&model, &dataset)?;
        }
        for name in &self.outside {
            let others = other_text(&model, name)?;
            match InDomainScores::of(&model, &dataset, name, &others)? {
                Some(scores) => results.in_domain.push(scores),
                None => bail!(
                    "--outside: the model did not learn what is not for it (`outside` in its preset)"
                ),
            }
        }
        if let Some(folder) = &self.against {
            let (_, task) = self.subject.given.split()?;
            let (other, dataset) = self.subject.part.open(folder, task)?;
            let record_of_other = Record::make(&other, &dataset, setting, || ())?;
            let name = ModelInfo::of(&other, folder).name;
            results.against = Some(Against::of(&record, &record_of_other, name));
        }
        if self.keep {
            results.keep(&folder)?;
        }
        if let Some(path) = &self.record {
            let json = serde_json::json!({ "dataset": dataset, "record": record });
            write_atomically(path, json.to_string().as_bytes())?;
        }
        self.output.finish(&mut results, since, |results| {
            let mut blocks = vec![heading(results, dataset.examples.len(), dataset.words())];
            if let Some(Against { with, labels }) = &results.against {
                blocks.push(format!("labels equal to those of {with}: {:.2} %\n", 100.0 * labels));
            }
            let both = [
                ("model", &results.evaluation),
                ("reference: the reviser at every word", &results.reference),
            ];
            for (name, evaluation) in both {
                let Some(evaluation) = evaluation else { continue };
                let tau = match evaluation.setting.mode {
                    Mode::TwoPass => format!(", threshold {:.2}", evaluation.setting.threshold),
                    _ => String::new(),
                };
                let score = 100.0 * evaluation.headline();
                blocks.push(format!("{name}{tau}\n{} {score:.2}\n", evaluation.headline_name()));
                blocks.push(evaluation.incremental_table().to_text());
                blocks.push(evaluation.measure_table().to_text());
                // A first pass alone has nothing to say here.
                let revisions = evaluation.revisions.as_ref();
                let revisions = revisions.filter(|revisions| revisions.silver.recomputations > 0);
                blocks.extend(revisions.map(|revisions| revisions.quality_table().to_text()));
                if self.by_label {
                    blocks.push(evaluation.score_table().to_text());
                }
            }
            let stability = results.stability.iter().flat_map(StabilityScores::tables);
            blocks.extend(stability.map(|table| table.to_text()));
            for InDomainScores { outside, area, refused, taken, .. } in &results.in_domain {
                blocks.push(format!(
                    "against {outside}: area under the curve {area:.3}; below 0.5 are {:.1} % of \
                     its own sentences and {:.1} % of the others\n",
                    100.0 * refused,
                    100.0 * (1.0 - taken)
                ));
            }
            blocks
        })
    }
}
