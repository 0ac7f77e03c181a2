//! `tapir train`: from a corpus to a model directory.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use tapir_data::write_atomically;
use tapir_eval::Provenance;
use tapir_train::{
    Compute, Event, Preset, Progress, RunOptions, StageName, StageReport, TrainedRun, train,
};

use crate::measure::provenance;

/// Train a model: action generator, actions, reviser, first pass and controller
///
/// Does every stage that is missing, says which it skips, and can be stopped at any moment: the
/// next call goes on from the last checkpoint, to the bit. The model is in OUT/model;
/// OUT/metrics.jsonl has a row for each epoch.
///
/// Examples:
///   tapir train small/snips
///   tapir train paper/snips-trf --seed 1 --out runs/snips-1
///   tapir train my.toml --data ~/corpora/mine --set reviser.layers=2
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Train {
    #[command(flatten)]
    recipe: crate::recipe::Recipe,
    /// Run only this stage; can be given several times
    #[arg(long, value_enum)]
    stage: Vec<StageArg>,
    /// Take the reviser of this model instead of training one: a name that ships, a training run, or
    /// the directory of a model
    #[arg(long, value_name = "NAME|DIR")]
    reviser: Option<PathBuf>,
    /// Another seed than the preset's
    #[arg(long)]
    seed: Option<u64>,
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Device::Cpu)]
    device: Device,
    /// At most so many epochs, in every stage
    #[arg(long)]
    epochs: Option<usize>,
    /// Seconds between checkpoints
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    checkpoint_every: f64,
    /// Write scores, seed, commit, preset and times to this file
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum StageArg {
    Generator,
    Actions,
    Reviser,
    FirstPass,
    Policy,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Device {
    /// All cores
    Cpu,
    /// A GPU through Vulkan, Metal, DirectX or WebGPU
    #[cfg(feature = "wgpu")]
    Wgpu,
    /// A GPU of NVIDIA's
    #[cfg(feature = "cuda")]
    Cuda,
}

impl From<Device> for Compute {
    fn from(device: Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu,
            #[cfg(feature = "wgpu")]
            Device::Wgpu => Self::Wgpu,
            #[cfg(feature = "cuda")]
            Device::Cuda => Self::Cuda,
        }
    }
}

impl From<StageArg> for StageName {
    fn from(stage: StageArg) -> Self {
        match stage {
            StageArg::Generator => Self::Generator,
            StageArg::Actions => Self::Actions,
            StageArg::Reviser => Self::Reviser,
            StageArg::FirstPass => Self::FirstPass,
            StageArg::Policy => Self::Policy,
        }
    }
}

impl Train {
    pub(crate) fn run(self) -> Result<()> {
        let settings: Vec<String> =
            self.seed.map(|seed| format!("seed={seed}")).into_iter().collect();
        let mut preset = self.recipe.open(settings)?;
        if let Some(epochs) = self.epochs {
            preset = preset.with_epochs(epochs)?;
        }
        if !self.checkpoint_every.is_finite() || self.checkpoint_every < 0.0 {
            bail!("--checkpoint-every is {}, expected seconds, 0 or more", self.checkpoint_every);
        }
        let options = RunOptions {
            stages: (!self.stage.is_empty())
                .then(|| self.stage.iter().map(|stage| (*stage).into()).collect()),
            reviser: self.reviser.as_ref().map(tapir::Model::find).transpose()?,
            checkpoint_every: Duration::from_secs_f64(self.checkpoint_every),
            compute: self.device.into(),
            ..self.recipe.options()
        };
        let mut screen = Screen::new();
        let (since, mut provenance) = (Instant::now(), provenance());
        let run = train(&preset, &options, &mut |event| {
            screen.show(event);
            ControlFlow::Continue(())
        })?;
        provenance.ended(since);
        self.finish(&preset, &run, &provenance)
    }

    fn finish(&self, preset: &Preset, run: &TrainedRun, provenance: &Provenance) -> Result<()> {
        let mut out = std::io::stdout();
        let Some(test) = &run.test else {
            writeln!(
                out,
                "stages are still missing: the same command without --stage runs them (preset {})",
                self.recipe.preset
            )?;
            return Ok(());
        };
        if let Some(model) = &run.model {
            writeln!(out, "model: {}", model.display())?;
        }
        if let Some(choice) = &run.choice {
            writeln!(out, "chosen on validation: {choice}")?;
        }
        for (split, scores) in
            run.valid.iter().map(|valid| ("validation", valid)).chain([("test", test)])
        {
            writeln!(
                out,
                "{split}: reviser {:.2}, TAPIR {:.2} (revises at {:.1} % of words), first pass {:.2}",
                scores.reviser.score,
                scores.tapir.score,
                scores.tapir.revised.unwrap_or(0.0),
                scores.first_pass.score
            )?;
        }
        if let Some(advice) = run.valid.unwrap_or(*test).advice(run.choice.as_ref()) {
            let split = if run.valid.is_some() { "validation" } else { "test" };
            eprintln!("warning, from {split}: {advice}");
        }
        if run.valid.is_some_and(|valid| valid.reviser.score < valid.first_pass.score) {
            eprintln!(
                "note: sessions of this model make no last revision, for the reviser is worse than \
                 the first pass (`final_pass` of its config.json)"
            );
        }
        if let Some(path) = &self.results {
            let json = serde_json::json!({
                "provenance": provenance, "preset": self.recipe.preset, "settings": preset,
                "seed": preset.seed, "stages": run.stages, "choice": run.choice,
                "valid": run.valid, "test": test,
            });
            write_atomically(path, (serde_json::to_string_pretty(&json)? + "\n").as_bytes())?;
        }
        Ok(())
    }
}

/// Two lines that are written over on a terminal; elsewhere a line per epoch, and one now and then
/// within it.
pub(crate) struct Screen {
    terminal: bool,
    last: Instant,
    drawn: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), last: Instant::now(), drawn: false }
    }

    pub(crate) fn show(&mut self, event: Event) {
        match event {
            Event::Skipped(stage) => eprintln!("{}: done before, skipped", stage.name()),
            Event::Started(stage, sentences) => {
                eprintln!("{}: {sentences} sentences", stage.name());
            }
            Event::Lessons { read, sentences, seconds } => self.lessons(read, sentences, seconds),
            Event::Actions(stats) => eprint!("actions:\n{stats}"),
            Event::Progress(progress) => self.progress(progress),
            Event::Finished(report) => self.finished(report),
        }
    }

    /// Is it time to say more? What `must` be said always is.
    fn is_time(&mut self, must: bool) -> bool {
        let patience = Duration::from_millis(if self.terminal { 200 } else { 20_000 });
        let is_time = must || self.last.elapsed() >= patience;
        if is_time {
            self.last = Instant::now();
        }
        is_time
    }

    /// A line in the place of the last one.
    fn lessons(&mut self, read: usize, sentences: usize, seconds: f64) {
        let is_last = read == sentences;
        if !self.is_time(is_last) {
            return;
        }
        let left = seconds / read.max(1) as f64 * (sentences - read) as f64;
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let end = if self.terminal && !is_last { "" } else { "\n" };
        eprint!(
            "{start}lessons of the reviser: {read} of {sentences} sentences  {seconds:.0} s, at most \
             {left:.0} s left{end}"
        );
        _ = std::io::stderr().flush();
    }

    fn progress(&mut self, progress: &Progress) {
        if !self.is_time(progress.score.is_some()) {
            return;
        }
        if self.drawn {
            eprint!("\x1b[2A\x1b[J");
        }
        self.drawn = self.terminal && progress.score.is_none();
        eprintln!("{}", lines(progress, self.drawn));
        _ = std::io::stderr().flush();
    }

    fn finished(&mut self, report: &StageReport) {
        self.drawn = false;
        let valid = report.valid.map_or_else(
            || "trained on the validation split, too".to_owned(),
            |valid| format!("validation {:.2}", valid.score),
        );
        eprintln!(
            "{}: epoch {} of {} is kept, {valid}, {:.0} s, {} parameters",
            report.part, report.kept_epoch, report.epochs, report.seconds, report.parameters
        );
    }
}

fn lines(progress: &Progress, two: bool) -> String {
    let done = (progress.epoch - 1) as f64 + progress.batch as f64 / progress.batches.max(1) as f64;
    let left = progress.seconds / done.max(1e-9) * (progress.epochs as f64 - done);
    let score = progress.score.map_or(String::new(), |score| format!("  score {score:.2}"));
    let revised =
        progress.revised.map_or(String::new(), |revised| format!("  revised {revised:.1} %"));
    let best = progress.best.map_or(String::new(), |best| format!("  best {best:.2}"));
    format!(
        "{}  epoch {}/{}  batch {}/{}{}loss {:.4}{score}{revised}{best}  {:.0} words/s  {:.0} s, at most {:.0} s left",
        progress.part,
        progress.epoch,
        progress.epochs,
        progress.batch,
        progress.batches,
        if two { "\n  " } else { "  " },
        progress.loss,
        progress.words_per_second,
        progress.seconds,
        left
    )
}
