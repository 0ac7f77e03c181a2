//! Edit overhead, correction time and relative correctness.

use std::collections::BTreeSet;

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::{beside, cell, means};
use crate::paper::Paper;
use crate::plot::{Group, bars, keys};
use crate::{Evaluation, Results, Table};

impl Report {
    /// Table and figure "incremental metrics".
    pub(super) fn incremental(&self) -> Section {
        let mut table = Table::new(["task, model", "EO", "CT", "RC", "score", "against the paper"]);
        let mut figures = Vec::new();
        for (name, group) in self.by_task() {
            let paper = theirs(group[0]);
            let reference =
                group.iter().filter(|e| e.model.delay == 0).find_map(|e| e.reference.as_ref());
            if let Some(reference) = reference {
                let figures = paper.map(|p| (p.reference_incremental, p.reference));
                push_incremental(&mut table, format!("{name}, reference"), reference, figures);
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
                let figures =
                    paper.and_then(|p| incremental_of(p, entry.model.reviser, entry.model.delay));
                push_incremental(&mut table, self.row(entry), evaluation, figures);
            }
            let delays: BTreeSet<usize> = group.iter().map(|entry| entry.model.delay).collect();
            figures.extend(
                delays.into_iter().filter_map(|delay| figure(&name, &group, reference, delay)),
            );
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let note = keys(&[
                (4, false, "reference"),
                (0, false, "TAPIR-Trf"),
                (0, true, "the paper's"),
                (1, false, "TAPIR-LT"),
                (1, true, "the paper's"),
            ]) + "<br>Lower is better for EO and CT, higher for RC. Each measure has its own scale, from 0. With a delay, the reference's bars are Δ.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "Edit overhead (EO), correction time score (CT) and relative correctness (RC), means over sentences. For a \
                    delayed model they are those of its shifted output; Δ is the reference's output held back. \
                    The reference of a task is the reviser of its first model.";
        Section { title: "Incremental behaviour", text: text.to_owned(), parts }
    }
}

/// The bars of a task's models with one delay, and of the reference held back by as much; none
/// without such a model.
fn figure(
    name: &str,
    group: &[&Results],
    reference: Option<&Evaluation>,
    delay: usize,
) -> Option<String> {
    let mut measures = [Vec::new(), Vec::new(), Vec::new()];
    let mut push = |values: [Option<f64>; 3], colour: usize, faint: bool| {
        for (bars, value) in measures.iter_mut().zip(values) {
            bars.extend(value.map(|value| (value, colour, faint)));
        }
    };
    if let Some(incremental) = reference.map(|reference| &reference.incremental) {
        if delay == 0 {
            push(means(incremental).map(Some), 4, false);
        } else if let Some(ahead) = incremental.ahead.iter().find(|ahead| ahead.delay == delay) {
            let [eo, rc] = [ahead.edit_overhead, ahead.relative_correctness].map(|s| s.mean);
            push([Some(eo), None, Some(rc)], 4, false);
        }
    }
    let mut models = 0;
    for (colour, kind) in
        [ReviserKind::Transformer, ReviserKind::LinearTransformer].into_iter().enumerate()
    {
        let alike = |e: &&&Results| e.model.reviser == Some(kind) && e.model.delay == delay;
        let ours: Vec<_> =
            group.iter().filter(alike).filter_map(|e| e.evaluation.as_ref()).collect();
        for evaluation in &ours {
            push(means(&evaluation.incremental).map(Some), colour, false);
        }
        // Once, however many of ours there are.
        let paper = theirs(group[0]).filter(|_| !ours.is_empty());
        if let Some((figures, _)) = paper.and_then(|p| incremental_of(p, Some(kind), delay)) {
            push(figures.map(Some), colour, true);
        }
        models += ours.len();
    }
    let title = if delay == 0 { name.to_owned() } else { format!("{name}, delay {delay}") };
    let group = |(name, bars): (&str, _)| Group { name: name.to_owned(), bars };
    let groups = ["EO", "CT", "RC"].into_iter().zip(measures).map(group);
    (models > 0).then(|| bars(&title, &groups.collect::<Vec<_>>()))
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
