//! Sentences per second.

use tapir::{Mode, ReviserKind};

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use crate::Table;

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
        for (name, entry) in self.named() {
            let Some(bench) = &entry.bench else { continue };
            let rate = |mode, precision| {
                bench
                    .system(mode, precision)
                    .map_or("–".to_owned(), |s| format!("{:.1}", s.sentences_per_second.mean))
            };
            let times = |precision| {
                bench.system(Mode::TwoPass, precision).map_or("–".to_owned(), |s| {
                    format!("**{:.2} ± {:.2}**", s.speedup.mean, s.speedup.std)
                })
            };
            let paper = theirs(entry).filter(|_| entry.model.delay == 0).map(|p| {
                let linear = entry.model.reviser == Some(ReviserKind::LinearTransformer);
                p.speed[if linear { 2 } else { 1 }] / p.speed[0]
            });
            let latency = bench.system(Mode::TwoPass, "f32").map(|s| s.latency);
            table.row([
                format!("{name}, {}", entry.model.title()),
                rate(Mode::Restart, "f32"),
                rate(Mode::TwoPass, "f32"),
                rate(Mode::FirstPass, "f32"),
                times("f32"),
                paper.map_or("–".to_owned(), |times| format!("{times:.2}")),
                rate(Mode::TwoPass, "int8"),
                times("int8"),
                latency.map_or("–".to_owned(), |l| {
                    format!("{:.0} / {:.0} / {:.0}", l.median, l.p95, l.p99)
                }),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Sentences a second on one core, one sentence at a time, every prefix. The reference is the same reviser at \
                    every word, without padding, on the same kernels: the honest baseline. (The paper's pads every input to \
                    200 words, which costs it most of its time.) × is how many times faster than the reference in f32, taken within interleaved repetitions.";
        Section { title: "Speed", text: text.to_owned(), parts }
    }
}
