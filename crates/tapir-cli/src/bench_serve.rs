//! `tapir bench serve`: how many streams the server holds, and what it holds out against.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use tapir_data::write_atomically;
use tapir_eval::Provenance;
use tapir_load::{BenchReport, LoadBench, Measured, Minute, Percentiles, Soak, SoakReport};

use crate::measure::provenance;
use crate::terminal::print;

/// What streams say without --text.
const SENTENCES: &str = "play some jazz by miles davis
book a table for four at a mexican restaurant in boston tomorrow at seven
what will the weather be like in san francisco next tuesday
add this song to my summer party playlist
give the last book five stars out of six
find the schedule for films at the nearest cinema
i want to hear the newest album by the rolling stones on spotify
will it rain in two hours in the national park";

/// Load a server on this machine: a given rate, the highest rate that it holds, or a soak
///
/// Starts servers of this program on free ports of the loopback, one of them without batches, and
/// a generator with one thread beside them. A rate is held if 98 of 100 words are answered, none
/// fails, and 99 of 100 first answers come within 50 ms. It ends by itself.
///
/// With --soak, a server with the limits that everybody gets is used by well-behaved clients and
/// by every kind of hostile client at once. All are on this machine, at addresses of the loopback
/// of their own. Fails if a well-behaved client is refused, answered wrongly or answered late, or
/// if the server's memory grows.
#[derive(Args)]
#[command(after_help = "Examples:
  tapir bench serve
  tapir bench serve --streams 500 --rate 2 --seconds 5
  tapir bench serve --only --against ./tapir-before -o results/serve/against.json
  tapir bench serve --soak --minutes 30 -o results/serve/soak.json
  tapir bench serve --text sentences.txt -o results/serve/load.json")]
pub(crate) struct BenchServe {
    /// A model that ships (snips, snips-small, pos) or the directory of one [default: snips]
    #[arg(long, value_name = "NAME|DIR")]
    model: Option<PathBuf>,
    /// What the streams say: one sentence per line [default: a few that ship]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Streams at once [default: 2000; with --soak 200]
    #[arg(long, value_name = "N")]
    streams: Option<usize>,
    /// Words a second and stream
    #[arg(long, value_name = "WORDS", default_value_t = 3.0)]
    rate: f64,
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Measure the given rate only
    #[arg(long)]
    only: bool,
    /// Another tapir program, such as an older one: its server is measured at the given rate, too,
    /// turn by turn
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Well-behaved clients beside every kind of hostile client, for a bounded time
    #[arg(long, conflicts_with_all = ["model", "rate", "seconds", "only", "against"])]
    soak: bool,
    /// How long the soak takes; a fraction is fine
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0, requires = "soak")]
    minutes: f64,
    /// Write the results to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is written.
#[derive(Serialize)]
struct Written<'a, T> {
    provenance: Provenance,
    #[serde(flatten)]
    report: &'a T,
}

impl BenchServe {
    pub(crate) fn run(self) -> Result<()> {
        crate::serve::raise_file_limit();
        if !is_positive(self.rate) || !is_positive(self.seconds) || !is_positive(self.minutes) {
            bail!("--rate, --seconds and --minutes: expected more than 0");
        }
        if self.streams == Some(0) {
            bail!("--streams: expected more than 0");
        }
        if self.soak { self.soak() } else { self.bench() }
    }

    fn bench(&self) -> Result<()> {
        let model = self.model.as_ref().map(|dir| dir.display().to_string());
        let bench = LoadBench {
            program: this_program()?,
            against: self.against.clone(),
            model: model.unwrap_or_else(|| "embedded:snips".into()),
            sentences: self.sentences()?,
            streams: self.streams.unwrap_or(2000),
            rate: self.rate,
            seconds: self.seconds,
            only: self.only,
        };
        let since = Instant::now();
        let provenance = provenance();
        let report = bench.run(|name, measured| self.print_progress(&row(name, measured)))?;
        self.finish(provenance, since, &report, || self.verdict(&report))
    }

    fn soak(&self) -> Result<()> {
        let soak = Soak {
            program: this_program()?,
            minutes: self.minutes,
            streams: self.streams.unwrap_or(200),
            sentences: self.sentences()?,
        };
        self.print_progress(MINUTES);
        let since = Instant::now();
        let provenance = provenance();
        let report = soak.run(|minute| self.print_progress(&minute_row(minute)))?;
        self.finish(provenance, since, &report, || soak_verdict(&report))?;
        let missed = report.bounds.iter().filter(|bound| !bound.passed).count();
        if missed > 0 {
            bail!("{missed} of {} bounds were missed", report.bounds.len());
        }
        Ok(())
    }

    /// A line while it goes on.
    fn print_progress(&self, line: &str) {
        if !self.json {
            // That nobody reads it is no reason to stop: there may be a file to write.
            let _ = print(&format!("{line}\n"));
        }
    }

    /// Writes the file, and prints JSON if that was asked for; otherwise text.
    fn finish<T: Serialize>(
        &self,
        mut provenance: Provenance,
        since: Instant,
        report: &T,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        provenance.ended(since);
        let written = Written { provenance, report };
        let json = serde_json::to_string_pretty(&written)? + "\n";
        if let Some(path) = &self.output {
            write_atomically(path, json.as_bytes())?;
        }
        print(&if self.json { json } else { text() })
    }

    fn verdict(&self, report: &BenchReport) -> String {
        let held = if report.asked.is_held() { "held" } else { "NOT HELD" };
        let asked = report.asked.offered.unwrap_or_default();
        let mut lines = vec![format!("{asked} words a second were asked for: {held}")];
        if let Some(against) = &report.against {
            lines.push(format!(
                "against {}: 99 % of first answers {:.1} and {:.1} ms, of last answers {:.1} and \
                 {:.1} ms, medians of the turns",
                against.program,
                against.this_median(|measured| measured.first.p99),
                against.other_median(|measured| measured.first.p99),
                against.this_median(|measured| measured.last.p99),
                against.other_median(|measured| measured.last.p99),
            ));
        }
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
            Some(path) => {
                std::fs::read_to_string(path).with_context(|| path.display().to_string())?
            }
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

fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program")
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

fn row(name: &str, measured: &Measured) -> String {
    let Measured { streams, offered, held, errors, first, last, revised, error } = measured;
    let offered = match offered {
        Some(offered) => format!("{offered:.0} offered"),
        None => "as many as possible".to_owned(),
    };
    let failure = match error {
        Some(error) => format!("; the first error: {error}"),
        None => String::new(),
    };
    format!(
        "{name:<11} {streams} streams, {offered}: {held:.0} words a second, {:.0} % revised, \
         {errors} errors; first answer median {:.1}, 95 % {:.1}, 99 % {:.1} ms; last 99 % {:.1} \
         ms{failure}",
        100.0 * revised,
        first.median,
        first.p95,
        first.p99,
        last.p99
    )
}

/// Above the rows of a soak: latencies are median, 99 % and the longest, in milliseconds.
const MINUTES: &str = "minute   words          first answer              six words tagged  \
                       errors   memory MB  sessions  streams  queue";

fn minute_row(minute: &Minute) -> String {
    let Minute { words, first, tag, errors, gauges, .. } = minute;
    let times = |of: &Percentiles| format!("{:>7.1} {:>7.1} {:>7.1}", of.median, of.p99, of.max);
    let error = minute.error.as_ref().map_or(String::new(), |error| format!("  {error}"));
    format!(
        "{:>6} {words:>7}  {}   {}  {errors:>6} {:>5.0}/{:<5.0} {:>8} {:>8} {:>6}{error}",
        minute.minute,
        times(first),
        times(tag),
        megabytes(minute.memory_mean),
        megabytes(minute.memory_max),
        gauges.sessions,
        gauges.connections,
        gauges.queue,
    )
}

fn soak_verdict(report: &SoakReport) -> String {
    let mut lines = vec![String::new()];
    lines.push("hostile        clients  connections     messages      answers     refusals".into());
    for attacked in &report.hostile {
        let kind = serde_json::to_value(attacked.kind).unwrap_or_default();
        lines.push(format!(
            "{:<14} {:>7} {:>12} {:>12} {:>12} {:>12}",
            kind.as_str().unwrap_or_default(),
            attacked.clients,
            attacked.connections,
            attacked.messages,
            attacked.answers,
            attacked.refusals
        ));
    }
    lines.push(format!(
        "\n{} sentences had the right labels; the generator woke up {:.1} ms late at 99 %",
        report.totals.compared, report.totals.late.p99
    ));
    for bound in &report.bounds {
        let passed = if bound.passed { "kept" } else { "MISSED" };
        let below = if bound.limit > 0.0 { "less than " } else { "" };
        let (name, measured, limit) = (bound.name, bound.measured, bound.limit);
        lines.push(format!("{passed:<6} {name}: {measured:.3}, expected {below}{limit}"));
    }
    lines.join("\n") + "\n"
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
