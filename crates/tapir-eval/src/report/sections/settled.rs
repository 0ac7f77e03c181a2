//! Intents, word by word; whether answers stay as often as a model says; what is not for it.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::plot::{Line, keys, lines};
use crate::table::points;
use crate::{InDomainScores, IntentScores, Reliability, StabilityScores, Table};

impl Report {
    /// Curves of the intent, reliability, and what acting early gains and risks.
    pub(super) fn settled(&self) -> Section {
        let (mut figures, mut tables) = (Vec::new(), Vec::new());
        let mut intents =
            Table::new(["model", "intent accuracy", "with all labels", "words until right"]);
        let mut domains =
            Table::new(["model", "other text", "sentences", "area", "own refused", "others taken"]);
        for (title, entry) in self.named() {
            let scores =
                entry.evaluation.as_ref().and_then(|evaluation| evaluation.intents.as_ref());
            if let Some(scores) = scores {
                figures.push(curve(&title, scores));
                intents.row([
                    title.clone(),
                    points(scores.accuracy),
                    points(scores.semantic),
                    format!("{:.2}", scores.words_until_right.mean),
                ]);
            }
            if let Some(stability) = &entry.stability {
                figures.push(reliability(&title, stability));
                let names = ["stability", "acting on what is settled"];
                for (table, name) in stability.tables().into_iter().zip(names) {
                    tables.push(Part::Folded(format!("{title}: {name}"), table));
                }
            }
            for InDomainScores { outside, sentences, area, refused, taken } in &entry.in_domain {
                domains.row([
                    title.clone(),
                    outside.clone(),
                    sentences.to_string(),
                    format!("{area:.3}"),
                    format!("{:.1} %", 100.0 * refused),
                    format!("{:.1} %", 100.0 * taken),
                ]);
            }
        }
        let mut parts = Vec::new();
        if !figures.is_empty() {
            let note = keys(&[(0, false, "labels"), (1, false, "spans"), (2, false, "intent")]);
            parts.push(Part::Figures(note, figures));
        }
        for table in [intents, domains].into_iter().filter(|table| !table.is_empty()) {
            parts.push(Part::Table(table));
        }
        parts.append(&mut tables);
        let text = "How soon the intent is right for good; of answers that a model calls stable with \
                    some probability, the share that stayed; how well it tells what is not for it.";
        Section { title: "Intents and settled answers", text: text.to_owned(), parts }
    }
}

/// The share of sentences in which the intent is right and stays so, by words read.
fn curve(title: &str, scores: &IntentScores) -> String {
    let most = scores.right_after.len().max(1) as f64;
    let point = |(i, share): (usize, &f64)| ((i + 1) as f64 / most, *share);
    let points = scores.right_after.iter().enumerate().map(point).collect();
    let line = Line { name: "intent".to_owned(), points, colour: 2, theirs: false };
    lines(&format!("{title}: intent right"), &format!("words read / {most}"), &[line], false)
}

/// What stayed, by what was said.
fn reliability(title: &str, stability: &StabilityScores) -> String {
    let line = |name: &str, colour, reliability: &Reliability| Line {
        name: name.to_owned(),
        points: reliability.bins.iter().map(|bin| (bin.said, bin.stayed)).collect(),
        colour,
        theirs: false,
    };
    let series = [
        Some(line("labels", 0, &stability.labels)),
        stability.spans.as_ref().map(|spans| line("spans", 1, spans)),
        stability.intent.as_ref().map(|intent| line("intent", 2, intent)),
    ];
    let series: Vec<Line> = series.into_iter().flatten().collect();
    lines(&format!("{title}: share that stayed"), "stability", &series, false)
}
