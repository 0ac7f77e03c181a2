//! What the measuring commands share: a model, the sentences to run it on, progress, and where
//! results go.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tapir::Model;
use tapir_data::{Split, Task};
use tapir_eval::{Dataset, ModelInfo, Provenance, Results};

use crate::model::DEFAULT_MODEL;
use crate::terminal::print;

/// Which model, and on what
#[derive(Args)]
pub(crate) struct Subject {
    #[command(flatten)]
    pub(crate) given: ModelAnd,
    #[command(flatten)]
    pub(crate) part: Part,
}

/// A model and a task. The model may be given by --model, as everywhere, or before the task
#[derive(Args)]
pub(crate) struct ModelAnd {
    /// The model (a name that ships, a training run or a model's directory; snips without it), and a
    /// task that ships (`tapir tasks`) or the path of a task file
    #[arg(value_names = ["MODEL", "TASK"], num_args = 1..=2, required = true)]
    what: Vec<String>,
    /// The model: one that ships (snips, snips-small, pos), a training run, or the directory of a model
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
}

impl ModelAnd {
    /// The model, and the task.
    pub(crate) fn split(&self) -> Result<(PathBuf, &str)> {
        model_and(&self.what, self.model.as_deref())
    }
}

/// `MODEL WHAT`, or `WHAT` with --model, or `WHAT` with the default model.
pub(crate) fn model_and<'a>(
    given: &'a [String],
    model: Option<&Path>,
) -> Result<(PathBuf, &'a str)> {
    match (given, model) {
        ([what], model) => Ok((model.unwrap_or(Path::new(DEFAULT_MODEL)).to_owned(), what)),
        ([model, what], None) => Ok((PathBuf::from(model), what)),
        _ => bail!("the model is given twice: as {} and by --model", given[0]),
    }
}

/// Which sentences of a task
#[derive(Args)]
pub(crate) struct Part {
    /// The split: train, valid or test [default: test; valid where something is fitted or chosen]
    #[arg(long, value_parser = split)]
    pub(crate) split: Option<Split>,
    /// The folder that holds the corpus [default: the folder of the task under data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Take only the first N sentences of the split
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Where results go
#[derive(Args)]
pub(crate) struct Output {
    /// Write the results to a file that `tapir report` reads
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn split(text: &str) -> Result<Split, String> {
    Split::ALL
        .into_iter()
        .find(|split| split.name() == text)
        .ok_or_else(|| "expected train, valid or test".to_owned())
}

impl Subject {
    /// The model and the sentences, and where the model is.
    pub(crate) fn open(&self) -> Result<(Model, Dataset, PathBuf)> {
        let (folder, task) = self.given.split()?;
        let (model, dataset) = self.part.open(&folder, task)?;
        Ok((model, dataset, folder))
    }
}

impl Part {
    /// Says so where what is about to be fitted or chosen would be on sentences that the model was
    /// trained on.
    pub(crate) fn warn_of_training(&self, model: &Model) {
        let preset = model.config().provenance.get("preset");
        let with_valid = preset.and_then(|preset| preset.get("with_valid")?.as_bool());
        let seen = match self.split {
            Some(Split::Train) => true,
            Some(Split::Valid) => with_valid == Some(true),
            _ => false,
        };
        if seen {
            eprintln!(
                "warning: the model was trained on these sentences, and looks better on them than on \
                 others; what is fitted or chosen here is too confident"
            );
        }
    }

    pub(crate) fn open(&self, model: &Path, task: &str) -> Result<(Model, Dataset)> {
        let model = Model::find(model)?;
        let task = Task::open(task)?;
        let corpus = task.load(self.data.as_deref())?;
        let mut dataset = Dataset::new(&model, &task, &corpus, self.split.unwrap_or(Split::Test))?;
        if let Some(limit) = self.limit {
            dataset.truncate(limit)?;
        }
        if !dataset.unknown_labels().is_empty() {
            eprintln!(
                "note: {} label(s) of the split never occur in training, such as `{}`; they count as wrong",
                dataset.unknown_labels().len(),
                dataset.unknown_labels()[0]
            );
        }
        Ok((model, dataset))
    }
}

/// The sentences of a text in the model's words: a file with one per line, or a text that ships.
/// Those that are longer than the model reads are left out.
pub(crate) fn other_text(model: &Model, name: &str) -> Result<Vec<Vec<String>>> {
    let config = model.config();
    Ok(tapir_data::read_text(name, config.tokenizer, config.max_length - config.delay)?)
}

pub(crate) fn results(folder: &Path, model: &Model, dataset: &Dataset) -> Results {
    Results::new(dataset, ModelInfo::of(model, folder), provenance())
}

impl Output {
    /// Notes the time, writes the file, and prints JSON if that was asked for; otherwise blocks of
    /// text.
    pub(crate) fn finish(
        &self,
        results: &mut Results,
        since: Instant,
        blocks: impl FnOnce(&Results) -> Vec<String>,
    ) -> Result<()> {
        results.provenance.ended(since);
        if let Some(path) = &self.output {
            results.save(path)?;
        }
        let text = if self.json {
            serde_json::to_string_pretty(results)? + "\n"
        } else {
            blocks(results).join("\n")
        };
        print(&text)
    }
}

/// A bar on standard error, where that is a terminal.
pub(crate) fn progress(what: &'static str, count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64).with_message(what);
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len}  {per_sec}  {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The program, the machine and the time: what is written with every result.
pub(crate) fn provenance() -> Provenance {
    Provenance::now(option_env!("TAPIR_COMMIT"))
}

/// What the results are about, in a line.
pub(crate) fn heading(results: &Results, sentences: usize, words: usize) -> String {
    let title = results.model.title();
    let (name, task, split) = (&results.model.name, &results.task, &results.split);
    format!(
        "{title} ({name}) on {task} {split}: {sentences} sentences, {words} words, {:.1} s\n",
        results.provenance.seconds
    )
}
