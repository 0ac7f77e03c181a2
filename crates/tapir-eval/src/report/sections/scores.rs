//! Scores on full sentences.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::beside;
use crate::{Evaluation, Table};

impl Report {
    /// Table "non-incremental performance".
    pub(super) fn scores(&self) -> Section {
        let mut table = Table::new([
            "task",
            "score",
            "reference",
            "Trf",
            "Trf D1",
            "Trf D2",
            "LT",
            "LT D1",
            "LT D2",
        ]);
        let mut details = Vec::new();
        for (name, group) in self.by_task() {
            let paper = theirs(group[0]);
            let find = |kind: ReviserKind, delay: usize| {
                let entry =
                    group.iter().find(|e| e.model.reviser == Some(kind) && e.model.delay == delay);
                entry.and_then(|entry| entry.evaluation.as_ref()).map(Evaluation::headline)
            };
            let reference = group.iter().find_map(|entry| entry.reference.as_ref());
            let any = group.iter().find_map(|entry| entry.evaluation.as_ref()).or(reference);
            let Some(any) = any else { continue };
            let mut row = vec![name.clone(), any.headline_name().to_owned()];
            row.push(beside(reference.map(Evaluation::headline), paper.map(|p| p.reference)));
            for (kind, figures) in [
                (ReviserKind::Transformer, paper.map(|p| p.transformer)),
                (ReviserKind::LinearTransformer, paper.map(|p| p.linear)),
            ] {
                for delay in 0..3 {
                    row.push(beside(find(kind, delay), figures.map(|figures| figures[delay])));
                }
            }
            table.row(row);
            for entry in group {
                if let Some(evaluation) = &entry.evaluation {
                    let title = format!("{name}, {} by label", entry.model.title());
                    details.push(Part::Details(title, evaluation.score_table()));
                }
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            parts.push(Part::Table(table));
            parts.append(&mut details);
        }
        let text = "Scores of the final output on full sentences, in points; as in the paper no revision is forced at the \
                    last word. The reference is the reviser run at every word, so that its final output is that of a \
                    full-sentence model.";
        Section { title: "Full sentences", text: text.to_owned(), parts }
    }
}
