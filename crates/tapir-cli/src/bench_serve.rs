//! `tapir bench serve`: how many streams the server holds.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use tapir_data::Aside;
use tapir_serve::load::{Load, Measured};

use crate::measure::{commit, print};

/// The most that the 99th percentile of a first answer may take, milliseconds.
const PROMISE: f64 = 50.0;
/// A rate is held if so much of it was answered.
const HELD: f64 = 0.98;
/// Every step of the search offers so many times the words of the last.
const STEP: f64 = 1.15;
/// How often the gap between a rate that was held and one that was not is halved.
const HALVINGS: usize = 3;
/// The search ends after so many rates.
const MOST_RATES: usize = 20;
/// How often the servers with and without batches take their turn.
const TURNS: usize = 3;

/// What streams say without --text.
const SENTENCES: &str = "play some jazz by miles davis
book a table for four at a mexican restaurant in boston tomorrow at seven
what will the weather be like in san francisco next tuesday
add this song to my summer party playlist
give the last book five stars out of six
find the schedule for films at the nearest cinema
i want to hear the newest album by the rolling stones on spotify
will it rain in two hours in the national park";

/// Load a server on this machine: many streams at a given rate, the highest rate that it holds, and what batches bring
///
/// Starts servers of this program on free ports of the loopback, one of them without batches, and a generator with one
/// thread beside them. A rate is held if 98 of 100 words are answered, none fails, and 99 of 100 first answers come within
/// 50 ms. It ends by itself.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir bench serve
  tapir bench serve --streams 500 --rate 2 --seconds 5
  tapir bench serve --text data/snips/test/seq.in -o results/serve/load.json")]
pub(crate) struct BenchServe {
    /// The model directory [default: the model that ships]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// What the streams say: a sentence a line [default: a few that ship]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Streams at once
    #[arg(long, value_name = "N", default_value_t = 2000)]
    streams: usize,
    /// Words a second and stream
    #[arg(long, value_name = "WORDS", default_value_t = 3.0)]
    rate: f64,
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Measure the given rate only
    #[arg(long)]
    only: bool,
    /// Write the results to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Serialize)]
struct Report {
    commit: Option<String>,
    model: String,
    workers: usize,
    seconds: f64,
    /// At the rate that was asked for.
    asked: Measured,
    /// The search for the highest rate: up in steps, then halfway between held and not held.
    search: Vec<Measured>,
    /// The most words a second that were held.
    highest: Option<f64>,
    /// As fast as answers come, with batches and without, turn by turn.
    saturated: Option<Saturated>,
}

#[derive(Serialize)]
struct Saturated {
    batched: Vec<Measured>,
    unbatched: Vec<Measured>,
    /// Of the words a second, the median over the turns.
    ratio: f64,
}

impl BenchServe {
    pub(crate) fn run(self) -> Result<()> {
        crate::serve::raise_file_limit();
        if self.streams == 0
            || self.rate.is_nan()
            || self.rate <= 0.0
            || self.seconds.is_nan()
            || self.seconds <= 0.0
        {
            bail!("--streams, --rate and --seconds: expected more than 0");
        }
        let since = Instant::now();
        let sentences = self.sentences()?;
        let server = Running::start(self.model.as_ref(), &["--batch", "64"])?;
        // One thread: the generator shares the machine with the server, and is to take little of it.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("no thread")?;
        let load = |server: &Running, rate: Option<f64>, streams: usize| {
            let load = Load {
                address: server.address.clone(),
                streams,
                rate,
                seconds: self.seconds,
                sentences: sentences.clone(),
            };
            runtime.block_on(load.run())
        };
        let asked = load(&server, Some(self.rate), self.streams)?;
        self.say(&format!("{}\n", row("asked for", &asked)))?;

        let mut search: Vec<Measured> = Vec::new();
        let mut highest = held(&asked).then_some(asked.held);
        if !self.only && highest.is_some() {
            // Up in steps until a rate is not held, and then halfway, a few times.
            let (mut low, mut high): (f64, Option<f64>) = (self.rate, None);
            let mut halvings = 0;
            while halvings < HALVINGS && search.len() < MOST_RATES {
                let rate = match high {
                    None => low * STEP,
                    Some(high) => {
                        halvings += 1;
                        f64::midpoint(low, high)
                    }
                };
                let measured = load(&server, Some(rate), self.streams)?;
                self.say(&format!("{}\n", row("higher", &measured)))?;
                if held(&measured) {
                    low = rate;
                    highest = Some(measured.held);
                } else {
                    high = Some(rate);
                }
                search.push(measured);
            }
        }
        let saturated = if self.only {
            None
        } else {
            let alone = Running::start(self.model.as_ref(), &["--batch", "1"])?;
            let (mut batched, mut unbatched) = (Vec::new(), Vec::new());
            // As many streams as keep batches full: each waits for its answer before it speaks again.
            let streams = self.streams.min(256);
            for _ in 0..TURNS {
                batched.push(load(&server, None, streams)?);
                unbatched.push(load(&alone, None, streams)?);
            }
            let median = |measured: &[Measured]| {
                let mut words: Vec<f64> = measured.iter().map(|measured| measured.held).collect();
                words.sort_unstable_by(f64::total_cmp);
                words[words.len() / 2]
            };
            let ratio = median(&batched) / median(&unbatched);
            for (name, measured) in [("in batches", &batched), ("one by one", &unbatched)] {
                for measured in measured {
                    self.say(&format!("{}\n", row(name, measured)))?;
                }
            }
            Some(Saturated { batched, unbatched, ratio })
        };
        let report = Report {
            commit: commit(),
            model: self.model.as_ref().map_or("embedded:snips".into(), |dir| dir.display().to_string()),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            seconds: since.elapsed().as_secs_f64(),
            asked,
            search,
            highest,
            saturated,
        };
        if let Some(path) = &self.output {
            let mut file = Aside::create(path, true)?;
            file.write_all((serde_json::to_string_pretty(&report)? + "\n").as_bytes())?;
            file.commit()?;
        }
        if self.json {
            return print(&(serde_json::to_string_pretty(&report)? + "\n"));
        }
        let verdict = if held(&report.asked) { "held" } else { "NOT HELD" };
        let mut lines =
            vec![format!("{} words a second were asked for: {verdict}", self.rate * self.streams as f64)];
        if let Some(highest) = report.highest.filter(|_| !self.only) {
            lines.push(format!("the most that was held: {highest:.0} words a second"));
        }
        if let Some(saturated) = &report.saturated {
            lines.push(format!("batches give {:.2} times as many words a second", saturated.ratio));
        }
        print(&(lines.join("\n") + "\n"))
    }

    fn sentences(&self) -> Result<Arc<Vec<Vec<String>>>> {
        let text = match &self.text {
            Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
            None => SENTENCES.to_owned(),
        };
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let sentences: Vec<_> = text.lines().map(words).filter(|words| !words.is_empty()).collect();
        if sentences.is_empty() {
            bail!("--text: there is no sentence in it");
        }
        Ok(Arc::new(sentences))
    }

    /// A line while it goes on.
    fn say(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { print(text) }
    }
}

fn held(measured: &Measured) -> bool {
    let offered = measured.offered.unwrap_or(0.0);
    measured.errors == 0 && measured.held >= HELD * offered && measured.first.p99 <= PROMISE
}

fn row(name: &str, measured: &Measured) -> String {
    let Measured { streams, offered, held, errors, first, last, revised, error } = measured;
    let offered = offered.map_or("as many as possible".to_owned(), |offered| format!("{offered:.0} offered"));
    let failure = error.as_ref().map_or(String::new(), |error| format!("; the first error: {error}"));
    format!(
        "{name:<11} {streams} streams, {offered}: {held:.0} words a second, {:.0} % revised, {errors} errors; first \
         answer median {:.1}, 95 % {:.1}, 99 % {:.1} ms; last 99 % {:.1} ms{failure}",
        100.0 * revised,
        first.median,
        first.p95,
        first.p99,
        last.p99
    )
}

/// A server of this program, ended with the value.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(model: Option<&PathBuf>, flags: &[&str]) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--requests", "1000000"]).args(flags);
        match model {
            Some(dir) => command.arg("--model").arg(dir),
            None => command.args(["--model", "embedded:snips"]),
        };
        command.env("TAPIR_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a server")?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let _ = child.kill();
            bail!("the server did not start; see above");
        };
        Ok(Self { address: address.to_owned(), child })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
