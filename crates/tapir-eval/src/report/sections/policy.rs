//! Actions and prefixes.

use tapir::ReviserKind;

use super::super::Report;
use super::super::document::{Part, Section, theirs};
use crate::Table;
use crate::plot::{Stack, keys, stacks};
use crate::tables::{POLICY, policy_row};

impl Report {
    /// Table and figure "distribution of actions and prefixes".
    pub(super) fn policy(&self) -> Section {
        let mut table = Table::new(POLICY);
        let (mut actions, mut prefixes) = (Vec::new(), Vec::new());
        let mut stack = |name: String, revise: f64, s: [f64; 8], faint: bool| {
            actions.push(Stack {
                name: name.clone(),
                parts: vec![
                    ((1.0 - revise) * s[3], 0, faint),
                    ((1.0 - revise) * s[2], 3, faint),
                    (revise * s[1], 1, faint),
                    (revise * s[0], 4, faint),
                ],
            });
            prefixes.push(Stack {
                name: format!("{name} C"),
                parts: vec![(s[5], 0, faint), (s[4], 4, faint)],
            });
            prefixes.push(Stack {
                name: format!("{name} I"),
                parts: vec![(s[6], 3, faint), (s[7], 1, faint)],
            });
        };
        for (name, group) in self.by_task() {
            let mut comparable = false;
            for entry in &group {
                let Some(analysis) = &entry.analysis else { continue };
                let (revise, shares) = (analysis.policy.revise_share(), analysis.policy.shares());
                table.row(policy_row(self.row(entry), revise, shares));
                stack(self.short(entry), revise, shares, false);
                comparable |=
                    entry.model.delay == 0 && entry.model.reviser == Some(ReviserKind::Transformer);
            }
            if let Some(p) = theirs(group[0]).filter(|_| comparable) {
                let [revise, rc, wi, rc_c, wi_i] = p.policy;
                let shares = [rc, 1.0 - rc, wi, 1.0 - wi, rc_c, 1.0 - rc_c, wi_i, 1.0 - wi_i];
                table.row(policy_row(format!("{name}, the paper's"), revise, shares));
                stack(format!("{name} paper"), revise, shares, true);
            }
        }
        let mut parts = Vec::new();
        if !table.is_empty() {
            let figures = vec![
                stacks("All steps, by action and prefix", &actions),
                stacks("By prefix: correct (C), incorrect (I)", &prefixes),
            ];
            let note = keys(&[
                (0, false, "WRITE, prefix correct"),
                (3, false, "WRITE, prefix incorrect"),
                (1, false, "REVISE, prefix incorrect (needed)"),
                (4, false, "REVISE, prefix correct (not needed)"),
            ]) + "<br>Muted bars are the paper's.";
            parts.push(Part::Figures(note, figures));
            parts.push(Part::Table(table));
        }
        let text = "A prefix is correct (C) if all labels given before the step match the final output, incorrect (I) \
                    otherwise; R is REVISE, W is WRITE.";
        Section { title: "What the policy does", text: text.to_owned(), parts }
    }
}
