//! What revisions buy: the score against the share of words revised.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use crate::paper::Paper;
use crate::plot::{Line, keys, lines};
use crate::table::points;
use crate::{Evaluation, Results, Sweep, Table};

/// Shares of words revised for which the table gives scores, and what its columns say.
const LIMITS: [(f64, &str); 6] = [
    (0.0, "none"),
    (0.05, "≤ 5 %"),
    (0.1, "≤ 10 %"),
    (0.2, "≤ 20 %"),
    (0.5, "≤ 50 %"),
    (1.0, "any"),
];

/// A run whose name ends so has the paper's actions: those that its generator made.
const GENERATOR: &str = "-generator";

impl Report {
    /// The sweeps of all runs of a task in one plot, by how often they revised instead of by
    /// threshold: policies that put their thresholds on different scales can be compared so.
    pub(super) fn trade_off(&self) -> Section {
        let head = ["task, run", "score"].into_iter().chain(LIMITS.map(|(_, name)| name));
        let mut table = Table::new(head);
        let mut figures = Vec::new();
        for (name, group) in self.by_task() {
            let swept: Vec<(&Results, &Sweep)> =
                group.iter().filter_map(|entry| Some((*entry, entry.sweep.as_ref()?))).collect();
            let mut series = Vec::new();
            for (colour, (entry, sweep)) in swept.iter().enumerate() {
                let run = run_name(entry);
                let score = sweep.evaluations.first().map_or("", Evaluation::headline_name);
                let mut row = vec![format!("{name}, {run}"), score.to_owned()];
                row.extend(LIMITS.map(|(limit, _)| within(sweep, limit)));
                table.row(row);
                let points = sweep.evaluations.iter().map(point).collect();
                series.push(Line { name: run, points, colour: colour % 5, theirs: false });
            }
            let same = |entry: &Results| {
                entry.model.delay == 0 && entry.model.reviser == Some(ReviserKind::Transformer)
            };
            let comparable = swept.iter().any(|(entry, _)| same(entry));
            series.extend(theirs(group[0]).filter(|_| comparable).map(published));
            if !swept.is_empty() {
                let score =
                    swept[0].1.evaluations.first().map_or("score", Evaluation::headline_name);
                let title = format!("{name}: {score}");
                let plot = lines(&title, "share of words revised", &series, false);
                let list: Vec<(usize, bool, &str)> =
                    series.iter().map(|l| (l.colour, l.theirs, l.name.as_str())).collect();
                let keys = keys(&list);
                figures.push(format!("<figure>{plot}<figcaption>{keys}</figcaption></figure>"));
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let note = "A mark is a threshold. The dashed line joins what the paper says: the reviser at every word, its policy \
                        at τ = 0.5, and the first pass alone.";
            parts.push(Part::Figures(note.to_owned(), figures));
            parts.push(Part::Table(table));
        }
        let text = "Every run's sweep by the share of words at which it revised, so that policies can be compared whatever their \
                    thresholds mean. The table has the score of the lowest threshold that revises at no more words than the \
                    column says. Runs whose names end in -generator were trained on the paper's actions.";
        Section { title: "Score against words revised", text: text.to_owned(), parts }
    }
}

/// The run, and what is special about it.
fn run_name(entry: &Results) -> String {
    let actions = if entry.model.name.ends_with(GENERATOR) { ": the paper's actions" } else { "" };
    format!("{}{actions}", entry.model.name)
}

/// Share of words revised, and score.
fn point(evaluation: &Evaluation) -> (f64, f64) {
    (evaluation.actions.revise_share(), evaluation.headline())
}

/// The score of the threshold that revises most, and no more than `limit`.
fn within(sweep: &Sweep, limit: f64) -> String {
    let allowed = sweep.evaluations.iter().map(point).filter(|(share, _)| *share <= limit);
    let most = allowed.max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or("–".to_owned(), |(_, score)| points(score))
}

/// The paper gives the share for three thresholds: 0, 0.5 and 1.
fn published(paper: &Paper) -> Line {
    let score = |tenths: usize| paper.sweep[tenths][3];
    Line {
        name: "the paper's".to_owned(),
        points: vec![(1.0, score(0)), (paper.policy[0], score(5)), (0.0, score(10))],
        colour: 4,
        theirs: true,
    }
}
