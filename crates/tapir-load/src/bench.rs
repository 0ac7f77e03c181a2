//! How many streams the servers of a program hold.

use std::path::{Path, PathBuf};
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
pub struct LoadBench {
    /// The program whose servers are loaded.
    pub program: PathBuf,
    /// Another program whose server is measured at the rate that is asked for, turn by turn.
    pub against: Option<PathBuf>,
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
    /// The same beside another program; `asked` is then this program's turn with the median of
    /// the 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Comparison>,
    /// The search for the highest rate: up in steps, then halfway between held and not held.
    pub search: Vec<Measured>,
    /// The most words a second that were held.
    pub highest: Option<f64>,
    /// As fast as answers come.
    pub saturated: Option<Saturated>,
}

/// Two programs at the rate that was asked for, turn by turn.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What the other program says of its version.
    pub program: String,
    /// The turns of this program.
    pub this: Vec<Measured>,
    /// The turns of the other.
    pub other: Vec<Measured>,
}

impl Comparison {
    /// The median over this program's turns.
    pub fn this_median(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        of(median(&self.this, &of))
    }

    /// The median over the other's turns.
    pub fn other_median(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        of(median(&self.other, &of))
    }
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

impl LoadBench {
    /// Measures, and tells of each measurement when it is done: what it was, and what came of it.
    pub fn run(&self, mut on_measured: impl FnMut(&str, &Measured)) -> Result<BenchReport, Error> {
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
        let server = self.start(&self.program, "64")?;
        let mut against = None;
        let asked = if let Some(program) = &self.against {
            let old = self.start(program, "64")?;
            let (mut this, mut other) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                this.push(load(&server, Some(self.rate), self.streams)?);
                on_measured("asked for", &this[this.len() - 1]);
                other.push(load(&old, Some(self.rate), self.streams)?);
                on_measured("the other", &other[other.len() - 1]);
            }
            let asked = median(&this, |measured| measured.first.p99).clone();
            against = Some(Comparison { program: version(program), this, other });
            asked
        } else {
            let asked = load(&server, Some(self.rate), self.streams)?;
            on_measured("asked for", &asked);
            asked
        };

        let mut search = Vec::new();
        let mut highest = asked.is_held().then_some(asked.held);
        if !self.only && highest.is_some() {
            let mut rates = RateSearch::above(self.rate);
            while let Some(rate) = rates.next_rate() {
                let measured = load(&server, Some(rate), self.streams)?;
                on_measured("higher", &measured);
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
            let alone = self.start(&self.program, "1")?;
            let (mut batched, mut unbatched) = (Vec::new(), Vec::new());
            let streams = self.streams.min(SATURATING);
            for _ in 0..TURNS {
                let measured = load(&server, None, streams)?;
                on_measured("in batches", &measured);
                batched.push(measured);
                let measured = load(&alone, None, streams)?;
                on_measured("one by one", &measured);
                unbatched.push(measured);
            }
            let held = |turns: &[Measured]| median(turns, |measured| measured.held).held;
            let ratio = held(&batched) / held(&unbatched);
            Some(Saturated { batched, unbatched, ratio })
        };
        Ok(BenchReport {
            model: self.model.clone(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            seconds: since.elapsed().as_secs_f64(),
            asked,
            against,
            search,
            highest,
            saturated,
        })
    }

    fn start(&self, program: &Path, batch: &str) -> Result<ServerProcess, Error> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--requests", "1000000"]);
        command.args(["--batch", batch, "--model", &self.model]).env("TAPIR_LOG", "warn");
        ServerProcess::start(command)
    }
}

/// What a program says of its version; its path is of no use to anybody else.
fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    // The first line has the number; older programs do not know their commit.
    let lines = text.lines().enumerate().filter(|(i, line)| *i == 0 || line.starts_with("commit"));
    lines.map(|(_, line)| line).collect::<Vec<_>>().join(", ")
}

/// The turn that is in the middle.
fn median(turns: &[Measured], of: impl Fn(&Measured) -> f64) -> &Measured {
    let mut turns: Vec<&Measured> = turns.iter().collect();
    turns.sort_by(|a, b| of(a).total_cmp(&of(b)));
    turns[turns.len() / 2]
}
