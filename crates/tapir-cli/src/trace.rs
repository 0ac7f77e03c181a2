//! `tapir trace`: a sentence as the model reads it, a row per time step.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use tapir::Model;
use tapir_data::{Sentence, write_atomically};
use tapir_eval::{Dataset, Record, Setting, Trace as Figure};

use crate::measure::{Output, Part, model_and, results};
use crate::model::threshold;
use crate::terminal::{colour, width};

/// Show how a model reads a sentence: a row per time step, edited labels marked, wrong ones
/// coloured
#[derive(Args)]
#[command(after_help = "Examples:
  tapir trace runs/snips 'play the song how does it feel by new order'
  tapir trace runs/snips snips --sentence 12 --svg figure.svg
  tapir trace runs/snips snips --pick 3 -o results/snips-trf/traces.json")]
pub(crate) struct Trace {
    /// The model (a name that ships, a training run or a model's directory; snips without it), and a
    /// text, or with --sentence or --pick a task
    #[arg(value_names = ["MODEL", "TEXT|TASK"], num_args = 1..=2, required = true)]
    what: Vec<String>,
    /// The model: one that ships (snips, snips-small, pos), a training run, or the directory of a model
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
    /// The sentence of the task's split, counted from 1; may be given several times
    #[arg(long, value_name = "N")]
    sentence: Vec<usize>,
    /// Find N telling sentences of the task: edited on the way, right in the end
    #[arg(long, value_name = "N", conflicts_with = "sentence")]
    pick: Option<usize>,
    #[command(flatten)]
    part: Part,
    /// The threshold of the policy [default: the model's]
    #[arg(long, value_parser = threshold)]
    threshold: Option<f32>,
    /// Write the (first) sentence as an SVG figure
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the (first) sentence as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

impl Trace {
    pub(crate) fn run(self) -> Result<()> {
        let since = Instant::now();
        let (folder, what) = model_and(&self.what, self.model.as_deref())?;
        let from_task = self.pick.is_some() || !self.sentence.is_empty();
        let (model, mut dataset) =
            if from_task { self.part.open(&folder, what)? } else { text(&folder, what)? };
        let mut setting = Setting::of(&model);
        if let Some(threshold) = self.threshold {
            setting = setting.threshold(threshold);
        }
        let count = dataset.examples.len();
        if let Some(bad) = self.sentence.iter().find(|n| !(1..=count).contains(*n)) {
            bail!(
                "there is no sentence {bad} in the {} split of {}: it has {count}",
                dataset.split,
                dataset.task
            );
        }
        if !self.sentence.is_empty() {
            let chosen = self.sentence.iter().map(|n| dataset.examples[n - 1].clone());
            dataset.examples = chosen.collect();
        }
        let record = Record::make(&model, &dataset, setting, || ())?;
        let mut figures: Vec<Figure> = match self.pick {
            Some(pick) => Figure::pick(&dataset, &record, pick),
            None => (0..dataset.examples.len())
                .filter_map(|i| Figure::of(&dataset, &record, i, from_task))
                .collect(),
        };
        // The sentences were numbered within those that were read.
        for (i, figure) in figures.iter_mut().enumerate().filter(|_| self.pick.is_none()) {
            figure.sentence = self.sentence.get(i).copied().unwrap_or(0);
        }
        let first = figures
            .first()
            .context("no sentence of 4 to 12 words was edited on the way; try --sentence N")?;
        if let Some(path) = &self.svg {
            write_atomically(path, first.to_svg(true).as_bytes())?;
        }
        if let Some(path) = &self.html {
            write_atomically(path, first.to_html().as_bytes())?;
        }
        let mut results = results(&folder, &model, &dataset);
        results.traces = figures;
        self.output.finish(&mut results, since, |results| {
            let width = width();
            let figures = results.traces.iter().map(|figure| {
                let title = match figure.sentence {
                    0 => String::new(),
                    n => format!("sentence {n}\n"),
                };
                title + &figure.to_text(width, colour())
            });
            let key = "◆ changed at this step   ◇ the revision overruled the first pass   ✗ differs from the final output\n";
            figures.chain([key.to_owned()]).collect()
        })
    }
}

/// A text of the user's own has no gold labels; any that the model knows will do in their place.
fn text(folder: &Path, text: &str) -> Result<(Model, Dataset)> {
    let model = Model::find(folder)?;
    let words = model.config().tokenizer.words(text);
    if words.is_empty() {
        bail!("the text has no words");
    }
    let labels = vec!["O".to_owned(); words.len()];
    let dataset = Dataset::of(&model, &[Sentence::new(words, labels)])?;
    Ok((model, dataset))
}
