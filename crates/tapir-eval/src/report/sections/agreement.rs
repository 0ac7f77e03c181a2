//! Whether the passes agree, and how time divides.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::Table;
use crate::tables::mean_and_std;

impl Report {
    pub(super) fn agreement(&self) -> Section {
        let mut table = Table::new([
            "task, model",
            "sentences that agree",
            "words that agree",
            "EO where they agree",
            "EO where not",
            "time: first pass",
            "controller",
            "revisions",
        ]);
        for (name, entry) in self.named() {
            let Some(analysis) = &entry.analysis else { continue };
            let (agreement, time) = (&analysis.agreement, analysis.time);
            let all = (time.first_pass + time.controller + time.reviser).max(f64::MIN_POSITIVE);
            let part = |seconds: f64| format!("{:.0} %", 100.0 * seconds / all);
            table.row([
                format!("{name}, {}", entry.model.title()),
                format!("{:.1} %", 100.0 * agreement.sentences),
                format!("{:.1} %", 100.0 * agreement.words),
                mean_and_std(agreement.overhead_agree),
                mean_and_std(agreement.overhead_disagree),
                part(time.first_pass),
                part(time.controller),
                part(time.reviser),
            ]);
        }
        let parts = if table.is_empty() { Vec::new() } else { vec![Part::Table(table)] };
        let text = "Whether first pass and reviser, each alone, end with the same labels; the edit overhead of the two-pass \
                    model in both cases; and how its time divides among its components on one core.";
        Section { title: "Agreement of the passes, and time", text: text.to_owned(), parts }
    }
}
