//! The effect of the threshold.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::{beside, cell, means};
use crate::paper::Paper;
use crate::plot::{Line, dashed, keys, lines};
use crate::table::{share, tau};
use crate::{Evaluation, Sweep, Table};

impl Report {
    /// Figure and table "effect of the threshold".
    pub(super) fn thresholds(&self) -> Section {
        let mut parts = Vec::new();
        let mut figures = Vec::new();
        let mut tables = Vec::new();
        for (title, entry) in self.named() {
            let Some(sweep) = &entry.sweep else { continue };
            let same =
                entry.model.delay == 0 && entry.model.reviser == Some(ReviserKind::Transformer);
            let paper = theirs(entry).filter(|_| same);
            // The two plots of a model stay side by side.
            let [low, high] = curves(&title, sweep, paper);
            figures.push(format!("<div class=\"pair\">{low}{high}</div>"));
            tables
                .push(Part::Folded(format!("{title}: raw numbers"), threshold_table(sweep, paper)));
            if let Some(choice) = &entry.choice {
                tables.push(Part::Note(format!("Chosen: {choice}.")));
            }
        }
        if !figures.is_empty() {
            let note =
                keys(&[(0, false, "EO"), (1, false, "CT"), (2, false, "RC"), (3, false, "score")])
                    + &dashed("the paper's");
            parts.push(Part::Figures(note, figures));
            parts.append(&mut tables);
        }
        let text = "From the reviser at every word (τ = 0) to the first pass alone (τ = 1).";
        Section { title: "The threshold", text: text.to_owned(), parts }
    }
}

/// A measure of ours by threshold.
fn line(sweep: &Sweep, name: &str, colour: usize, value: &dyn Fn(&Evaluation) -> f64) -> Line {
    let point = |e: &Evaluation| (f64::from(e.setting.threshold), value(e));
    let points = sweep.evaluations.iter().map(point).collect();
    Line { name: name.to_owned(), points, colour, theirs: false }
}

/// Two plots: what falls with the threshold, and what is near 1.
fn curves(title: &str, sweep: &Sweep, paper: Option<&Paper>) -> [String; 2] {
    let ours =
        |name: &str, colour, value: &dyn Fn(&Evaluation) -> f64| line(sweep, name, colour, value);
    let theirs = |name: &str, colour: usize, column: usize| {
        paper.map(|p| Line {
            name: format!("{name}, the paper's"),
            points: p
                .sweep
                .iter()
                .enumerate()
                .map(|(i, row)| (i as f64 / 10.0, row[column]))
                .collect(),
            colour,
            theirs: true,
        })
    };
    let low = [
        Some(ours("EO", 0, &|e| e.incremental.edit_overhead.mean)),
        Some(ours("CT", 1, &|e| e.incremental.correction_time.mean)),
        theirs("EO", 0, 0),
        theirs("CT", 1, 1),
    ];
    let high = [
        Some(ours("RC", 2, &|e| e.incremental.relative_correctness.mean)),
        Some(ours("score", 3, &Evaluation::headline)),
        theirs("RC", 2, 2),
        theirs("score", 3, 3),
    ];
    let plot = |what: &str, series: [Option<Line>; 4]| {
        let series: Vec<Line> = series.into_iter().flatten().collect();
        lines(&format!("{title}: {what}"), "threshold τ", &series, false)
    };
    let score = sweep.evaluations.first().map_or("score", Evaluation::headline_name);
    [plot("EO, CT", low), plot(&format!("RC, {score}"), high)]
}

fn threshold_table(sweep: &Sweep, paper: Option<&Paper>) -> Table {
    let score = sweep.evaluations.first().map_or("score", Evaluation::headline_name);
    let mut table = Table::new(["τ", "EO", "CT", "RC", score, "REVISE"]);
    for evaluation in &sweep.evaluations {
        let threshold = evaluation.setting.threshold;
        // The paper has tenths only.
        let tenth = (threshold * 10.0).round();
        let row = paper
            .filter(|_| (threshold * 10.0 - tenth).abs() < 1e-4)
            .and_then(|p| p.sweep.get(tenth as usize));
        let ours = means(&evaluation.incremental);
        table.row([
            tau(threshold),
            cell(ours[0], row.map(|row| row[0])),
            cell(ours[1], row.map(|row| row[1])),
            cell(ours[2], row.map(|row| row[2])),
            beside(Some(evaluation.headline()), row.map(|row| 100.0 * row[3])),
            share(evaluation.actions.revise_share()),
        ]);
    }
    table
}

impl Sweep {
    /// The plot of the sweep, as an SVG file of its own.
    pub fn to_svg(&self, title: &str) -> String {
        let line = |name: &str, colour, value: &dyn Fn(&Evaluation) -> f64| {
            line(self, name, colour, value)
        };
        let score = self.evaluations.first().map_or("score", Evaluation::headline_name);
        let series = [
            line("EO", 0, &|e| e.incremental.edit_overhead.mean),
            line("CT", 1, &|e| e.incremental.correction_time.mean),
            line("RC", 2, &|e| e.incremental.relative_correctness.mean),
            line(score, 3, &Evaluation::headline),
        ];
        lines(title, "threshold τ", &series, true)
    }
}
