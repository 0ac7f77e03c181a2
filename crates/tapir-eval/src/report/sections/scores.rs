//! Scores on full sentences.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::{beside, mean};
use crate::{Evaluation, Results, Table};

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
        let columns: Vec<(ReviserKind, usize)> =
            [ReviserKind::Transformer, ReviserKind::LinearTransformer]
                .into_iter()
                .flat_map(|kind| (0..3).map(move |delay| (kind, delay)))
                .collect();
        let mut details = Vec::new();
        let mut averaged = Vec::new();
        for (name, group) in self.by_task() {
            // The paper has no pretrained ones, and its reference is not theirs.
            let pretrained = |entry: &&Results| entry.model.reviser == Some(ReviserKind::Bert);
            let mut own = group.iter().filter(|entry| !pretrained(entry));
            let reference = own.find_map(|entry| entry.reference.as_ref());
            let any = group.iter().find_map(|entry| entry.evaluation.as_ref()).or(reference);
            let Some(any) = any else { continue };
            // Ours and the paper's, reference first.
            let mut cells: Vec<Cell> = vec![(None, None); 1 + columns.len()];
            cells[0].0 = reference.map(Evaluation::headline);
            if let Some(paper) = theirs(group[0]) {
                let figures = [paper.reference].into_iter().chain(paper.transformer);
                for (cell, figure) in cells.iter_mut().zip(figures.chain(paper.linear)) {
                    cell.1 = Some(figure);
                }
            }
            let mut others = Vec::new();
            for entry in &group {
                let Some(evaluation) = &entry.evaluation else { continue };
                let title = format!("{} by label", self.row(entry));
                details.push(Part::Details(title, evaluation.score_table()));
                let kind = match entry.model.reviser {
                    Some(ReviserKind::Bert) => Some(ReviserKind::Transformer),
                    other => other,
                };
                let place = (kind, entry.model.delay);
                let column = columns.iter().position(|&(kind, delay)| place == (Some(kind), delay));
                let Some(column) = column else { continue };
                let cell = &mut cells[1 + column].0;
                if cell.is_none() && !pretrained(entry) {
                    *cell = Some(evaluation.headline());
                } else {
                    others.push((self.row(entry), column, *entry));
                }
            }
            let score = any.headline_name();
            table.row(row(&name, score, &cells));
            for (name, column, entry) in others {
                let headline = |evaluation: &Option<Evaluation>| {
                    evaluation.as_ref().map_or(String::new(), |e| beside(Some(e.headline()), None))
                };
                let mut row = vec![name, score.to_owned(), headline(&entry.reference)];
                row.resize(3 + column, String::new());
                row.push(headline(&entry.evaluation));
                table.row(row);
            }
            if group[0].split == "test" {
                averaged.push(cells);
            }
        }
        if averaged.len() > 1 {
            let column = |i: usize| {
                let ours = mean(averaged.iter().map(|cells| cells[i].0));
                (ours, mean(averaged.iter().map(|cells| cells[i].1)))
            };
            let cells: Vec<Cell> = (0..=columns.len()).map(column).collect();
            table.row(row("average", "", &cells));
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            parts.push(Part::Table(table));
            parts.append(&mut details);
        }
        let text = "Scores of the final output on full sentences, in points; as in the paper no revision is forced at the \
                    last word. The reference is the reviser run at every word, so that its final output is that of a \
                    full-sentence model. The average is that of the test sets, where all have a score. Where a task \
                    has several models alike, those after the first have rows of their own, and so have pretrained \
                    ones.";
        Section { title: "Full sentences", text: text.to_owned(), parts }
    }
}

/// A score of ours, as a share, and the paper's, in points.
type Cell = (Option<f64>, Option<f64>);

fn row(name: &str, score: &str, cells: &[Cell]) -> Vec<String> {
    let mut row = vec![name.to_owned(), score.to_owned()];
    row.extend(cells.iter().map(|(ours, theirs)| beside(*ours, *theirs)));
    row
}
