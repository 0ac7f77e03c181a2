//! Whether the passes agree, and how time divides.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::Table;
use crate::plot::{Range, Stack, keys, ranges, stacks};
use crate::tables::mean_and_std;

/// Colours of the two cases.
const AGREE: usize = 0;
const DISAGREE: usize = 1;

impl Report {
    /// Figure "agreement percentage of the final output".
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
        let (mut shares, mut overheads) = (Vec::new(), Vec::new());
        for (name, entry) in self.named() {
            let Some(analysis) = &entry.analysis else { continue };
            let (agreement, time) = (&analysis.agreement, analysis.time);
            let all = (time.first_pass + time.controller + time.reviser).max(f64::MIN_POSITIVE);
            let part = |seconds: f64| format!("{:.0} %", 100.0 * seconds / all);
            table.row([
                name,
                format!("{:.1} %", 100.0 * agreement.sentences),
                format!("{:.1} %", 100.0 * agreement.words),
                mean_and_std(agreement.overhead_agree),
                mean_and_std(agreement.overhead_disagree),
                part(time.first_pass),
                part(time.controller),
                part(time.reviser),
            ]);
            let alike = agreement.sentences;
            shares.push(Stack {
                name: self.short(entry),
                parts: vec![(alike, AGREE, false), (1.0 - alike, DISAGREE, false)],
            });
            for (colour, overhead, percentiles) in [
                (AGREE, agreement.overhead_agree, agreement.agree_percentiles),
                (DISAGREE, agreement.overhead_disagree, agreement.disagree_percentiles),
            ] {
                if overhead.count > 0 {
                    let name = self.short(entry);
                    overheads.push(Range { name, colour, mean: overhead.mean, percentiles });
                }
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let figures = vec![
                stacks("Sentences by whether the passes agree", &shares),
                ranges("Edit overhead of the two-pass model in both cases", &overheads),
            ];
            let note = keys(&[(AGREE, false, "they agree"), (DISAGREE, false, "they do not")])
                + "<br>A bar reaches from the median to 95 % of the sentences, its line to the largest value; the \
                   mark and the figure are the mean.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "Whether first pass and reviser, each alone, end with the same labels; the edit overhead of the two-pass \
                    model in both cases; and how its time divides among its components on one core.";
        Section { title: "Agreement of the passes, and time", text: text.to_owned(), parts }
    }
}
