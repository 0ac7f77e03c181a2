//! `tapir bench`: speed and latency, one stream on one core.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use tapir::Mode;
use tapir_eval::{Bench as Table, Setting};

use crate::measure::{Output, Subject, heading, progress, results};
use crate::model::threshold;

/// So many sentences give steady ratios in a minute or so.
const SENTENCES: usize = 200;

/// Time reference, TAPIR and first pass in turns: sentences and words a second, latency per word,
/// int8 beside f32
///
/// One sentence at a time, every prefix, on one core. The reference is the reviser at every word,
/// without padding. The systems take turns in each repetition, and ratios are taken within one.
/// Takes the first 200 sentences unless --limit says otherwise.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir bench runs/snips snips
  tapir bench runs/snips snips --repetitions 9 --limit 700 -o results/snips-bench.json")]
#[cfg_attr(
    feature = "serve",
    command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)
)]
pub(crate) struct Bench {
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    subject: Subject,
    /// The threshold of the policy [default: the model's]
    #[arg(long, value_parser = threshold)]
    threshold: Option<f32>,
    /// How often the systems take their turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    #[command(flatten)]
    output: Output,
}

/// What else can be loaded.
#[cfg(feature = "serve")]
#[derive(clap::Subcommand)]
enum Other {
    Serve(crate::bench_serve::BenchServe),
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        #[cfg(feature = "serve")]
        if let Some(Other::Serve(serve)) = self.other {
            return serve.run();
        }
        let mut subject = self.subject;
        subject.part.limit.get_or_insert(SENTENCES);
        let (model, dataset, folder) = subject.open()?;
        let since = Instant::now();
        let mut setting = Setting::of(&model).mode(Mode::TwoPass);
        if let Some(threshold) = self.threshold {
            setting = setting.threshold(threshold);
        }
        let repetitions = usize::from(self.repetitions);
        let bar = progress("timing", Table::turns(repetitions));
        let bench = Table::run(&model, &dataset, setting, repetitions, || bar.inc(1))?;
        bar.finish_and_clear();
        let mut results = results(&folder, &model, &dataset);
        results.bench = Some(bench);
        self.output.finish(&mut results, since, |results| {
            let how = format!("{repetitions} repetitions, threshold {:.2}\n", setting.threshold);
            let table =
                results.bench.as_ref().map_or(String::new(), |bench| bench.table().to_text());
            vec![heading(results, dataset.examples.len(), dataset.words()) + &how, table]
        })
    }
}
