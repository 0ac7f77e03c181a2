//! `tapir bench serve`: how many streams the server holds.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use tapir_data::Aside;
use tapir_load::{Bench, BenchReport, Measured};

use crate::measure::{commit, print};

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
  tapir bench serve --text sentences.txt -o results/serve/load.json")]
pub(crate) struct BenchServe {
    /// A model that ships (snips, pos) or the directory of one [default: snips]
    #[arg(long, value_name = "NAME|DIR")]
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

/// What is written.
#[derive(Serialize)]
struct Written<T> {
    commit: Option<String>,
    #[serde(flatten)]
    report: T,
}

impl BenchServe {
    pub(crate) fn run(self) -> Result<()> {
        crate::serve::raise_file_limit();
        if self.streams == 0 || !is_positive(self.rate) || !is_positive(self.seconds) {
            bail!("--streams, --rate and --seconds: expected more than 0");
        }
        let bench = Bench {
            program: std::env::current_exe().context("cannot find this program")?,
            model: self.model.as_ref().map_or("embedded:snips".into(), |dir| dir.display().to_string()),
            sentences: self.sentences()?,
            streams: self.streams,
            rate: self.rate,
            seconds: self.seconds,
            only: self.only,
        };
        let report = bench.run(|name, measured| {
            if !self.json {
                // A reader that has gone is told at the end.
                let _ = print(&(row(name, measured) + "\n"));
            }
        })?;
        let written = Written { commit: commit(), report };
        let json = serde_json::to_string_pretty(&written)? + "\n";
        if let Some(path) = &self.output {
            let mut file = Aside::create(path, true)?;
            file.write_all(json.as_bytes())?;
            file.commit()?;
        }
        print(&if self.json { json } else { self.verdict(&written.report) })
    }

    fn verdict(&self, report: &BenchReport) -> String {
        let held = if report.asked.is_held() { "held" } else { "NOT HELD" };
        let asked = self.rate * self.streams as f64;
        let mut lines = vec![format!("{asked} words a second were asked for: {held}")];
        if let Some(highest) = report.highest.filter(|_| !self.only) {
            lines.push(format!("the most that was held: {highest:.0} words a second"));
        }
        if let Some(saturated) = &report.saturated {
            lines.push(format!("batches give {:.2} times as many words a second", saturated.ratio));
        }
        lines.join("\n") + "\n"
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
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
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
