//! Edit overhead, correction time and relative correctness.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::{beside, cell, means};
use crate::paper::Paper;
use crate::plot::{Group, bars, keys};
use crate::{Evaluation, Table};

impl Report {
    /// Table and figure "incremental metrics".
    pub(super) fn incremental(&self) -> Section {
        let mut table = Table::new(["task, model", "EO", "CT", "RC", "score", "against the paper"]);
        let mut figures = Vec::new();
        for (name, group) in self.by_task() {
            let paper = theirs(group[0]);
            let mut bars_of = [Vec::new(), Vec::new(), Vec::new()];
            if let Some(reference) =
                group.iter().filter(|e| e.model.delay == 0).find_map(|e| e.reference.as_ref())
            {
                let figures = paper.map(|p| (p.reference_incremental, p.reference));
                push_incremental(&mut table, format!("{name}, reference"), reference, figures);
                let ours = means(&reference.incremental);
                for (bars, value) in bars_of.iter_mut().zip(ours) {
                    bars.push((value, 4, false));
                }
                for (i, ahead) in reference.incremental.ahead.iter().enumerate() {
                    let figures = paper.map(|p| (p.reference_ahead[i], p.reference_ahead[2 + i]));
                    table.row([
                        format!("{name}, reference Δ{}", ahead.delay),
                        cell(ahead.edit_overhead.mean, figures.map(|f| f.0)),
                        "–".to_owned(),
                        cell(ahead.relative_correctness.mean, figures.map(|f| f.1)),
                        String::new(),
                        String::new(),
                    ]);
                }
            }
            for entry in &group {
                let Some(evaluation) = &entry.evaluation else { continue };
                let (kind, delay) = (entry.model.reviser, entry.model.delay);
                let figures = paper.and_then(|p| incremental_of(p, kind, delay));
                push_incremental(
                    &mut table,
                    format!("{name}, {}", entry.model.title()),
                    evaluation,
                    figures,
                );
                if delay == 0 {
                    let colour = usize::from(kind == Some(ReviserKind::LinearTransformer));
                    for (i, value) in means(&evaluation.incremental).into_iter().enumerate() {
                        bars_of[i].push((value, colour, false));
                        if let Some((figures, _)) = figures {
                            bars_of[i].push((figures[i], colour, true));
                        }
                    }
                }
            }
            let [eo, ct, rc] = bars_of;
            if !eo.is_empty() {
                let group = |name: &str, bars| Group { name: name.to_owned(), bars };
                figures.push(bars(&name, &[group("EO", eo), group("CT", ct), group("RC", rc)]));
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let note = keys(&[
                (4, false, "reference"),
                (0, false, "TAPIR-Trf"),
                (0, true, "the paper's"),
                (1, false, "TAPIR-LT"),
                (1, true, "the paper's"),
            ]) + "<br>Lower is better for EO and CT, higher for RC. Each measure has its own scale, from 0.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "Edit overhead (EO), correction time score (CT) and relative correctness (RC), means over sentences. For a \
                    delayed model they are those of its shifted output; Δ is the reference's output held back.";
        Section { title: "Incremental behaviour", text: text.to_owned(), parts }
    }
}

fn incremental_of(
    paper: &Paper,
    kind: Option<ReviserKind>,
    delay: usize,
) -> Option<([f64; 3], f64)> {
    match kind? {
        ReviserKind::Transformer => {
            Some((*paper.transformer_incremental.get(delay)?, paper.transformer[delay]))
        }
        ReviserKind::LinearTransformer => {
            Some((*paper.linear_incremental.get(delay)?, paper.linear[delay]))
        }
        ReviserKind::Bert => None,
    }
}

fn push_incremental(
    table: &mut Table,
    name: String,
    evaluation: &Evaluation,
    paper: Option<([f64; 3], f64)>,
) {
    let ours = means(&evaluation.incremental);
    let score = evaluation.headline();
    table.row([
        name,
        cell(ours[0], paper.map(|p| p.0[0])),
        cell(ours[1], paper.map(|p| p.0[1])),
        cell(ours[2], paper.map(|p| p.0[2])),
        beside(Some(score), paper.map(|p| p.1)),
        paper.map_or(String::new(), |(theirs, their_score)| {
            verdict(ours, score, theirs, their_score)
        }),
    ]);
}

/// Where we are ahead and behind, judged on the digits that the tables show.
fn verdict(ours: [f64; 3], score: f64, theirs: [f64; 3], their_score: f64) -> String {
    let round = |value: f64, digits: f64| (value * digits).round();
    let names = ["EO", "CT", "RC"];
    let mut better = Vec::new();
    let mut worse = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let sign = if i == 2 { 1.0 } else { -1.0 };
        let gain = sign * (round(ours[i], 1000.0) - round(theirs[i], 1000.0));
        if gain > 0.0 {
            better.push(name);
        } else if gain < 0.0 {
            worse.push(name);
        }
    }
    match (round(100.0 * score, 100.0) - round(their_score, 100.0)).total_cmp(&0.0) {
        std::cmp::Ordering::Greater => better.push("score"),
        std::cmp::Ordering::Less => worse.push("score"),
        std::cmp::Ordering::Equal => {}
    }
    let list = |word: &str, names: Vec<&str>| {
        (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
    };
    let parts: Vec<String> =
        [list("better", better), list("worse", worse)].into_iter().flatten().collect();
    if parts.is_empty() { "equal".to_owned() } else { parts.join("; ") }
}
