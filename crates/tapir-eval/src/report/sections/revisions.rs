//! How good the revisions are.

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use super::cell;
use crate::paper::{Paper, RevisionFigures};
use crate::table::maybe;
use crate::tables::{QUALITIES, qualities};
use crate::{Results, Revisions, Table};

impl Report {
    /// The measures of Madureira et al. (2023), theirs of the paper's models beside ours.
    pub(super) fn revisions(&self) -> Section {
        let head = ["task, model", "recomputed", "active", "any change"];
        let mut table = Table::new(head.into_iter().chain(QUALITIES));
        let mut against_gold = Table::new(["task, model"].into_iter().chain(QUALITIES));
        let mut details = Vec::new();
        for (name, group) in self.by_task() {
            let published = theirs(group[0]).and_then(|paper| paper.revisions);
            let mut push = |name: String, ours: &Revisions, theirs: Option<RevisionFigures>| {
                against_gold
                    .row([name.clone()].into_iter().chain(qualities(&ours.gold).map(maybe)));
                table.row(row(name, ours, theirs));
            };
            let undelayed = || group.iter().filter(|entry| entry.model.delay == 0);
            let reference = undelayed().find_map(|entry| entry.reference.as_ref());
            if let Some(ours) = reference.and_then(|reference| reference.revisions.as_ref()) {
                push(format!("{name}, reference"), ours, published.map(|figures| figures[0]));
            }
            for entry in &group {
                let Some(ours) = measured(entry) else { continue };
                let theirs = published.filter(|_| entry.model.delay == 0);
                let theirs = theirs.and_then(|f| Paper::of_kind(f, entry.model.reviser));
                push(self.row(entry), ours, theirs);
                let title = format!("{}: kinds of revisions", self.row(entry));
                details.push(Part::Details(title, ours.kind_table()));
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            parts.push(Part::Table(table));
            parts.push(Part::Folded("The same against gold".to_owned(), against_gold));
            parts.append(&mut details);
        }
        let text = "The measures of Madureira, Kahardipraja and Schlangen (The Road to Quality is Paved with Good Revisions, \
                    SIGDIAL 2023); figures in brackets are theirs of the paper's models. A recomputation is a step that ran the \
                    reviser. It is active if it changed an earlier label; any change counts the newest word, too, on which it may \
                    overrule the first pass. A revision (R) is a step that changed an earlier label, an addition (A) any other. \
                    Pertinence: the share of revisions that found an incorrect prefix (effective ones made it better), of \
                    additions that found a correct one. Appropriateness: the share of incorrect prefixes that were revised, of \
                    correct ones that were not. A prefix is correct if it is that of the final output.";
        Section { title: "Revision quality", text: text.to_owned(), parts }
    }
}

/// What `eval` measured, or else `analyze`.
fn measured(entry: &Results) -> Option<&Revisions> {
    let evaluation = entry.evaluation.as_ref().and_then(|evaluation| evaluation.revisions.as_ref());
    evaluation.or_else(|| entry.analysis.as_ref()?.revisions.as_ref())
}

fn row(name: String, ours: &Revisions, theirs: Option<RevisionFigures>) -> Vec<String> {
    let figure = |index: usize| theirs.map(|figures| figures[index]);
    let mut row = vec![
        name,
        cell(ours.silver.recomputation_share(), figure(0)),
        cell(ours.silver.active_share(), figure(1)),
        maybe(ours.changing_share()),
    ];
    let values = qualities(&ours.silver).into_iter().zip(2..);
    row.extend(values.map(|(ours, index)| cell(ours, figure(index))));
    row
}
