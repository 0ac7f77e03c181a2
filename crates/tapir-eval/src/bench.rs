//! Speed: one sentence at a time, every prefix, on one core, as the paper measures it.
//!
//! The systems take turns within each repetition, so that whatever disturbs the machine disturbs
//! all of them; ratios are taken within a repetition, and their spread says how far they can be
//! trusted.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tapir::{Mode, Model, Precision};

use crate::record::numbered;
use crate::{Dataset, Percentiles, Result, SentenceRun, Setting, Summary};

/// What is timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Which passes.
    pub mode: Mode,
    /// `f32` or `int8`.
    pub precision: String,
    /// Sentences a second, over the repetitions.
    pub sentences_per_second: Summary,
    /// Words a second.
    pub words_per_second: Summary,
    /// How many times faster than the reference in f32, within each repetition.
    pub speedup: Summary,
    /// Microseconds per word.
    pub latency: Percentiles,
}

impl System {
    /// What tables call it.
    pub fn name(&self) -> &'static str {
        match self.mode {
            Mode::Restart => "reference",
            Mode::TwoPass => "TAPIR",
            Mode::FirstPass => "first pass",
        }
    }
}

/// The result of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// How the two-pass model was run.
    pub setting: Setting,
    /// How many sentences each repetition reads.
    pub sentences: usize,
    /// How many words.
    pub words: usize,
    /// How often all systems took their turn.
    pub repetitions: usize,
    /// Reference, TAPIR and first pass, in f32 and in int8.
    pub systems: Vec<System>,
}

impl Bench {
    /// Times a two-pass model; `progress` is called after each turn of a system, of which there are
    /// [`turns`](Self::turns).
    pub fn run(
        model: &Model,
        dataset: &Dataset,
        setting: Setting,
        repetitions: usize,
        progress: impl Fn(),
    ) -> Result<Self> {
        // Both are made anew, so that they are what they are called however the model is stored.
        let full = model.parts().quantize(Precision::F32)?.load()?;
        let small = model.parts().quantize(Precision::Int8)?.load()?;
        let systems: Vec<(&Model, &str, Mode)> = [(&full, "f32"), (&small, "int8")]
            .into_iter()
            .flat_map(|(model, name)| {
                [Mode::Restart, Mode::TwoPass, Mode::FirstPass].map(|mode| (model, name, mode))
            })
            .collect();
        let repetitions = repetitions.max(1);
        let mut seconds = vec![Vec::with_capacity(repetitions); systems.len()];
        let mut latencies = vec![Vec::new(); systems.len()];
        for _ in 0..repetitions {
            for (i, (model, _, mode)) in systems.iter().enumerate() {
                let mut session = setting.mode(*mode).session(model)?;
                let start = Instant::now();
                for (sentence, example) in dataset.examples.iter().enumerate() {
                    session.reset();
                    let run = SentenceRun::make(&mut session, example)
                        .map_err(|error| numbered(error, sentence))?;
                    latencies[i].extend(run.nanos.iter().map(|nanos| *nanos as f64 / 1000.0));
                }
                seconds[i].push(start.elapsed().as_secs_f64().max(1e-9));
                progress();
            }
        }
        let (sentences, words) = (dataset.examples.len(), dataset.words());
        let rate =
            |count: usize, seconds: &[f64]| Summary::of(seconds.iter().map(|s| count as f64 / s));
        let timed =
            systems.iter().zip(&seconds).zip(latencies).map(|(((_, name, mode), own), latency)| {
                System {
                    mode: *mode,
                    precision: (*name).to_owned(),
                    sentences_per_second: rate(sentences, own),
                    words_per_second: rate(words, own),
                    speedup: Summary::of(
                        seconds[0].iter().zip(own).map(|(reference, own)| reference / own),
                    ),
                    latency: Percentiles::of(latency),
                }
            });
        let systems = timed.collect();
        Ok(Self { setting, sentences, words, repetitions, systems })
    }

    /// How many turns a benchmark of so many repetitions takes.
    pub fn turns(repetitions: usize) -> usize {
        6 * repetitions.max(1)
    }

    /// The system with these passes and precision.
    pub fn system(&self, mode: Mode, precision: &str) -> Option<&System> {
        self.systems.iter().find(|system| system.mode == mode && system.precision == precision)
    }
}
