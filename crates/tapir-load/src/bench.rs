//! How many streams the servers of a program hold.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::{Error, Load, Measured, RateSearch, ServerProcess};

/// How often servers take their turn.
const TURNS: usize = 3;
/// Streams that keep batches full when each waits for its answer before it speaks again.
const SATURATING: usize = 256;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The program whose servers are loaded.
    pub program: PathBuf,
    /// The directory of the model, or the name of one that ships.
    pub model: String,
    /// What the streams say.
    pub sentences: Arc<Vec<Vec<String>>>,
    /// Streams at once.
    pub streams: usize,
    /// Words a second and stream that are asked for.
    pub rate: f64,
    /// How long each measurement takes.
    pub seconds: f64,
    /// Measures the rate that is asked for, and no other.
    pub only: bool,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The directory of the model, or the name of one that ships.
    pub model: String,
    /// Threads that computed.
    pub workers: usize,
    /// How long all of it took.
    pub seconds: f64,
    /// At the rate that was asked for.
    pub asked: Measured,
    /// The search for the highest rate: up in steps, then halfway between held and not held.
    pub search: Vec<Measured>,
    /// The most words a second that were held.
    pub highest: Option<f64>,
    /// As fast as answers come.
    pub saturated: Option<Saturated>,
}

/// As fast as answers come, with batches and without, turn by turn.
#[derive(Clone, Debug, Serialize)]
pub struct Saturated {
    /// With batches.
    pub batched: Vec<Measured>,
    /// One word at a time.
    pub unbatched: Vec<Measured>,
    /// Of the words a second, the median over the turns.
    pub ratio: f64,
}

impl Bench {
    /// Measures, and tells of each measurement when it is done: what it was, and what came of it.
    pub fn run(&self, mut tell: impl FnMut(&str, &Measured)) -> Result<BenchReport, Error> {
        let since = Instant::now();
        // One thread: the generator shares the machine with the server, and is to take little.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime =
            runtime.enable_all().build().map_err(|error| Error::Generator(error.to_string()))?;
        let load = |server: &ServerProcess, rate: Option<f64>, streams: usize| {
            let (address, sentences) = (server.address, self.sentences.clone());
            let load = Load { address, streams, rate, seconds: self.seconds, sentences };
            runtime.block_on(load.run())
        };
        let server = self.start(&["--batch", "64"])?;
        let asked = load(&server, Some(self.rate), self.streams)?;
        tell("asked for", &asked);

        let mut search = Vec::new();
        let mut highest = asked.is_held().then_some(asked.held);
        if !self.only && highest.is_some() {
            let mut rates = RateSearch::above(self.rate);
            while let Some(rate) = rates.next_rate() {
                let measured = load(&server, Some(rate), self.streams)?;
                tell("higher", &measured);
                rates.note(rate, measured.is_held());
                if measured.is_held() {
                    highest = Some(measured.held);
                }
                search.push(measured);
            }
        }
        let saturated = if self.only {
            None
        } else {
            let alone = self.start(&["--batch", "1"])?;
            let (mut batched, mut unbatched) = (Vec::new(), Vec::new());
            let streams = self.streams.min(SATURATING);
            for _ in 0..TURNS {
                let measured = load(&server, None, streams)?;
                tell("in batches", &measured);
                batched.push(measured);
                let measured = load(&alone, None, streams)?;
                tell("one by one", &measured);
                unbatched.push(measured);
            }
            let ratio = median_held(&batched) / median_held(&unbatched);
            Some(Saturated { batched, unbatched, ratio })
        };
        Ok(BenchReport {
            model: self.model.clone(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            seconds: since.elapsed().as_secs_f64(),
            asked,
            search,
            highest,
            saturated,
        })
    }

    fn start(&self, flags: &[&str]) -> Result<ServerProcess, Error> {
        let mut command = Command::new(&self.program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--requests", "1000000"]).args(flags);
        command.args(["--model", &self.model]).env("TAPIR_LOG", "warn");
        ServerProcess::start(command)
    }
}

fn median_held(measured: &[Measured]) -> f64 {
    let mut words: Vec<f64> = measured.iter().map(|measured| measured.held).collect();
    words.sort_unstable_by(f64::total_cmp);
    words[words.len() / 2]
}
