//! What a live display shows.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::Table;
use crate::table::share;

impl Report {
    pub(super) fn streaming(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "streaming EM",
            "words to final",
            "95 %",
            "flickers/word",
            "words changed",
            "operations/sentence",
            "of reference",
        ]);
        for (name, entry) in self.named() {
            let Some(evaluation) = &entry.evaluation else { continue };
            let streaming = &evaluation.streaming;
            let of_reference =
                entry.reference.as_ref().map(|r| evaluation.operations.mean / r.operations.mean);
            table.row([
                name,
                share(streaming.exact_match.mean),
                format!("{:.2}", streaming.time_to_final.mean),
                format!("{:.0}", streaming.time_to_final_percentiles.p95),
                share(streaming.flickers),
                share(streaming.changed),
                format!("{:.1} M", evaluation.operations.mean / 1e6),
                of_reference.map_or("–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Beyond the paper: how often the labels shown so far equal the gold ones, how many words pass until a label \
                    is final, how much it flickers, and what it costs in floating-point operations.";
        Section { title: "On a live display", text: text.to_owned(), parts }
    }
}
