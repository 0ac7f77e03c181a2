//! Sentences per second.

use std::collections::BTreeSet;

use tapir::Mode;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::mean;
use crate::paper::Paper;
use crate::{Bench, Results, Table};

impl Report {
    /// Table "comparison of incremental inference speed".
    pub(super) fn speed(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "reference",
            "TAPIR",
            "first pass",
            "TAPIR ×",
            "the paper's ×",
            "TAPIR int8",
            "int8 ×",
            "µs/word, median / 95 % / 99 %",
        ]);
        let benched = || self.named().filter_map(|(name, e)| Some((name, e, e.bench.as_ref()?)));
        for (name, entry, bench) in benched() {
            let rate = |mode, precision: &str| {
                Some(bench.system(mode, precision)?.sentences_per_second.mean)
            };
            let times = |precision: &str| {
                let speedup = bench.system(Mode::TwoPass, precision)?.speedup;
                Some(format!("**{:.2} ± {:.2}**", speedup.mean, speedup.std))
            };
            let paper = speed_of(entry).map(|(reference, tapir)| tapir / reference);
            let latency = bench.system(Mode::TwoPass, "f32").map(|system| system.latency);
            let latency = latency.map_or("–".to_owned(), |l| {
                format!("{:.0} / {:.0} / {:.0}", l.median, l.p95, l.p99)
            });
            table.row(row(name, rate, times, paper, latency));
        }
        let tested: Vec<(&Results, &Bench)> =
            benched().map(|(_, e, bench)| (e, bench)).filter(|(e, _)| e.split == "test").collect();
        let tasks: BTreeSet<&str> = tested.iter().map(|(e, _)| e.task.as_str()).collect();
        let titles: BTreeSet<String> = tested.iter().map(|(e, _)| e.model.title()).collect();
        for title in titles {
            // The first model of each task that is called so.
            let of = |task: &&str| {
                tested.iter().find(|(e, _)| e.task == **task && e.model.title() == title).copied()
            };
            let models: Option<Vec<_>> = tasks.iter().map(of).collect();
            if let Some(models) = models.filter(|models| models.len() > 1) {
                table.row(average(format!("average, {title}"), &models));
            }
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Sentences a second on one core, one sentence at a time, every prefix. The reference is the same reviser at \
                    every word, without padding, on the same kernels: the honest baseline. (The paper's pads every input to \
                    200 words, which costs it most of its time.) × is how many times faster than the reference in f32, taken within interleaved repetitions; of averages, it is their ratio, as in the paper.";
        Section { title: "Speed", text: text.to_owned(), parts }
    }
}

/// The paper's sentences a second of the reference and of a model like this one.
fn speed_of(entry: &Results) -> Option<(f64, f64)> {
    let paper = theirs(entry).filter(|_| entry.model.delay == 0)?;
    Some((paper.speed[0], Paper::of_kind(paper.speed, entry.model.reviser)?))
}

/// The row of the mean of several tasks.
fn average(name: String, models: &[(&Results, &Bench)]) -> [String; 9] {
    let rate = |mode, precision: &str| {
        let of = |bench: &Bench| Some(bench.system(mode, precision)?.sentences_per_second.mean);
        mean(models.iter().map(|(_, bench)| of(bench)))
    };
    let times = |precision: &str| {
        let times = rate(Mode::TwoPass, precision)? / rate(Mode::Restart, "f32")?;
        Some(format!("**{times:.2}**"))
    };
    let theirs = |of: fn((f64, f64)) -> f64| mean(models.iter().map(|(e, _)| speed_of(e).map(of)));
    let (reference, tapir) = (theirs(|speed| speed.0), theirs(|speed| speed.1));
    let paper = tapir.zip(reference).map(|(tapir, reference)| tapir / reference);
    row(name, rate, times, paper, String::new())
}

/// A row from sentences a second by passes and precision, and from how many times the reference
/// TAPIR is by precision.
fn row(
    name: String,
    rate: impl Fn(Mode, &str) -> Option<f64>,
    times: impl Fn(&str) -> Option<String>,
    paper: Option<f64>,
    latency: String,
) -> [String; 9] {
    let none = || "–".to_owned();
    let rate = |mode, precision| rate(mode, precision).map_or_else(none, |r| format!("{r:.1}"));
    [
        name,
        rate(Mode::Restart, "f32"),
        rate(Mode::TwoPass, "f32"),
        rate(Mode::FirstPass, "f32"),
        times("f32").unwrap_or_else(none),
        paper.map_or_else(none, |times| format!("{times:.2}")),
        rate(Mode::TwoPass, "int8"),
        times("int8").unwrap_or_else(none),
        latency,
    ]
}
