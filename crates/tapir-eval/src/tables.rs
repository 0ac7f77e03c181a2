//! What the commands print: tables of an evaluation, its revisions, a sweep, an analysis and a
//! benchmark.

use crate::table::{maybe, points, share, tau};
use crate::{
    Analysis, Bench, Evaluation, Incremental, RevisionKinds, RevisionQuality, Revisions, Summary,
    Sweep, Table, UnknownWords,
};

/// A mean of nothing is not shown as nought.
pub(crate) fn mean_and_std(summary: Summary) -> String {
    if summary.count == 0 {
        return "–".to_owned();
    }
    format!("{:.3} ± {:.3}", summary.mean, summary.std)
}

fn incremental_row(table: &mut Table, name: &str, incremental: &Incremental) {
    table.row([
        name.to_owned(),
        mean_and_std(incremental.edit_overhead),
        mean_and_std(incremental.correction_time),
        mean_and_std(incremental.relative_correctness),
        incremental.edit_overhead.count.to_string(),
    ]);
}

impl Evaluation {
    /// Scores by label, the most frequent first.
    pub fn score_table(&self) -> Table {
        let mut table =
            Table::new(["label", "precision", "recall", "F1", "right", "found", "gold"]);
        let mut labels: Vec<_> = self.scores.labels.iter().collect();
        labels.sort_by_key(|(name, score)| (std::cmp::Reverse(score.support), *name));
        let micro = "all (micro)".to_owned();
        for (name, score) in labels.into_iter().chain([(&micro, &self.scores.micro)]) {
            table.row([
                name.clone(),
                points(score.precision),
                points(score.recall),
                points(score.f1),
                score.right.to_string(),
                score.found.to_string(),
                score.support.to_string(),
            ]);
        }
        table
    }

    /// Edit overhead, correction time and relative correctness, mean ± standard deviation over
    /// sentences.
    pub fn incremental_table(&self) -> Table {
        let mut table = Table::new(["sentences", "EO", "CT", "RC", "count"]);
        incremental_row(&mut table, "all", &self.incremental);
        incremental_row(&mut table, "final output right", &self.right);
        incremental_row(&mut table, "final output wrong", &self.wrong);
        for ahead in &self.incremental.ahead {
            table.row([
                format!("all, output held back by {}", ahead.delay),
                mean_and_std(ahead.edit_overhead),
                "–".to_owned(),
                mean_and_std(ahead.relative_correctness),
                ahead.edit_overhead.count.to_string(),
            ]);
        }
        table
    }

    /// Everything else, one measure a line.
    pub fn measure_table(&self) -> Table {
        let mut table = Table::new(["measure", "value"]);
        let streaming = &self.streaming;
        let actions = self.actions;
        let rows = [
            ("token accuracy", points(self.scores.accuracy)),
            ("sentences without an error", points(self.scores.exact)),
            ("sentences with the right spans", points(self.scores.exact_spans)),
            ("REVISE, share of steps", share(actions.revise_share())),
            ("streaming exact match", share(streaming.exact_match.mean)),
            ("words until a label is final, mean", format!("{:.2}", streaming.time_to_final.mean)),
            (
                "words until a label is final, 95 % of words",
                format!("{:.0}", streaming.time_to_final_percentiles.p95),
            ),
            ("flickers per word", share(streaming.flickers)),
            ("words ever changed", share(streaming.changed)),
            ("operations per sentence, millions", format!("{:.1}", self.operations.mean / 1e6)),
        ];
        rows.into_iter().for_each(|(name, value)| table.row([name.to_owned(), value]));
        if let Some(intents) = &self.intents {
            for (name, value) in [
                ("intent accuracy", points(intents.accuracy)),
                ("sentences with intent and labels right", points(intents.semantic)),
                ("intent, edit overhead", share(intents.edit_overhead.mean)),
                ("intent, correction time", share(intents.correction_time.mean)),
                ("intent, relative correctness", share(intents.relative_correctness.mean)),
                (
                    "words until the intent is right for good, mean",
                    format!("{:.2}", intents.words_until_right.mean),
                ),
            ] {
                table.row([name.to_owned(), value]);
            }
            for (after, right) in intents.right_after.iter().enumerate() {
                let name = format!("intent right for good after {} words", after + 1);
                table.row([name, points(*right)]);
            }
        }
        if let Some(UnknownWords { words, accuracy }) = self.unknown.filter(|u| u.words > 0) {
            let value = format!("{} of {words}", points(accuracy));
            table.row(["token accuracy, words unknown to the model".to_owned(), value]);
        }
        if let Some(latency) = self.latency {
            let value = format!("{:.0} / {:.0} / {:.0}", latency.median, latency.p95, latency.p99);
            table.row(["microseconds per word, median / 95 % / 99 %".to_owned(), value]);
        }
        table
    }
}

/// The measures of a policy, as their authors name them.
pub(crate) const QUALITIES: [&str; 5] = [
    "R-pertinence",
    "A-pertinence",
    "R-appropriateness",
    "A-appropriateness",
    "R-effective-pertinence",
];

/// Their values against one target.
pub(crate) fn qualities(quality: &RevisionQuality) -> [Option<f64>; 5] {
    [
        quality.revision_pertinence(),
        quality.addition_pertinence(),
        quality.revision_appropriateness(),
        quality.addition_appropriateness(),
        quality.effective_revision_pertinence(),
    ]
}

impl Revisions {
    /// How often it recomputed, what that changed, and whether it was right to; against the final
    /// output and against gold.
    pub fn quality_table(&self) -> Table {
        let mut table = Table::new(["revisions", "final output", "gold"]);
        for (name, value) in [
            ("steps that recomputed", self.silver.recomputation_share()),
            ("recomputations that changed an earlier label", self.silver.active_share()),
            ("recomputations that changed any label", self.changing_share()),
        ] {
            table.row([name.to_owned(), maybe(value)]);
        }
        let both = qualities(&self.silver).into_iter().zip(qualities(&self.gold));
        for (name, (silver, gold)) in QUALITIES.into_iter().zip(both) {
            table.row([name.to_owned(), maybe(silver), maybe(gold)]);
        }
        table
    }

    /// The revisions by kind, as shares of all. Only effectiveness and convenience depend on what
    /// they are measured against.
    pub fn kind_table(&self) -> Table {
        let mut table = Table::new(["property", "revisions", "final output", "gold"]);
        let mut above = "";
        for (silver, gold) in kinds(&self.silver.kinds).into_iter().zip(kinds(&self.gold.kinds)) {
            let (property, kind, count) = silver;
            let by_target = matches!(property, "effectiveness" | "convenience");
            let gold = by_target.then(|| maybe(self.gold.kind_share(gold.2)));
            table.row([
                if property == above { "" } else { property }.to_owned(),
                kind.to_owned(),
                maybe(self.silver.kind_share(count)),
                gold.unwrap_or_default(),
            ]);
            above = property;
        }
        table
    }
}

/// Property, kind and count of revisions, in the order of [`RevisionKinds`].
fn kinds(kinds: &RevisionKinds) -> [(&'static str, &'static str, usize); 21] {
    [
        ("effectiveness", "effective", kinds.effective),
        ("effectiveness", "defective", kinds.defective),
        ("effectiveness", "ineffective", kinds.ineffective),
        ("convenience", "convenient", kinds.convenient),
        ("convenience", "inconvenient", kinds.inconvenient),
        ("recurrence", "recurrent", kinds.recurrent),
        ("recurrence", "steady", kinds.steady),
        ("oscillation", "oscillating", kinds.oscillating),
        ("oscillation", "stable", kinds.stable),
        ("company", "isolated", kinds.isolated),
        ("company", "accompanied", kinds.accompanied),
        ("connectedness", "connected", kinds.connected),
        ("connectedness", "disconnected", kinds.disconnected),
        ("connectedness", "both", kinds.connected_and_disconnected),
        ("distance", "short range", kinds.short_range),
        ("distance", "long range", kinds.long_range),
        ("distance", "both", kinds.short_and_long_range),
        ("definiteness", "definite", kinds.definite),
        ("definiteness", "temporary", kinds.temporary),
        ("time", "intermediate", kinds.intermediate),
        ("time", "final", kinds.final_step),
    ]
}

impl Sweep {
    /// The paper's table of raw numbers.
    pub fn table(&self) -> Table {
        let score = self.evaluations.first().map_or("score", Evaluation::headline_name);
        let mut table = Table::new(["τ", "EO", "CT", "RC", score, "REVISE"]);
        for evaluation in &self.evaluations {
            let incremental = &evaluation.incremental;
            table.row([
                tau(evaluation.setting.threshold),
                share(incremental.edit_overhead.mean),
                share(incremental.correction_time.mean),
                share(incremental.relative_correctness.mean),
                points(evaluation.headline()),
                share(evaluation.actions.revise_share()),
            ]);
        }
        table
    }
}

/// The columns of the paper's table of actions and prefixes.
pub(crate) const POLICY: [&str; 11] =
    ["", "WRITE", "REVISE", "R∩C/R", "R∩I/R", "W∩I/W", "W∩C/W", "R∩C/C", "W∩C/C", "W∩I/I", "R∩I/I"];

/// A row of it.
pub(crate) fn policy_row(name: String, revise: f64, shares: [f64; 8]) -> Vec<String> {
    let mut row = vec![name, share(1.0 - revise), share(revise)];
    row.extend(shares.map(share));
    row
}

impl Analysis {
    /// Actions and prefixes, in the shape of the paper's table.
    pub fn policy_table(&self) -> Table {
        let mut table = Table::new(POLICY);
        table.row(policy_row("steps".to_owned(), self.policy.revise_share(), self.policy.shares()));
        table
    }

    /// Agreement of the passes, and the edit overhead in each case.
    pub fn agreement_table(&self) -> Table {
        let mut table =
            Table::new(["final outputs of the passes", "share", "EO", "EO median", "EO 95 %"]);
        let agreement = &self.agreement;
        for (name, share_of, overhead, percentiles) in [
            ("agree", agreement.sentences, agreement.overhead_agree, agreement.agree_percentiles),
            (
                "disagree",
                1.0 - agreement.sentences,
                agreement.overhead_disagree,
                agreement.disagree_percentiles,
            ),
        ] {
            table.row([
                name.to_owned(),
                share(share_of),
                mean_and_std(overhead),
                share(percentiles.median),
                share(percentiles.p95),
            ]);
        }
        table
    }

    /// Where the time goes.
    pub fn time_table(&self) -> Table {
        let time = self.time;
        let all = (time.first_pass + time.controller + time.reviser).max(f64::MIN_POSITIVE);
        let mut table = Table::new(["component", "milliseconds", "share"]);
        for (name, seconds) in [
            ("first pass", time.first_pass),
            ("memory, controller, policy", time.controller),
            ("revisions", time.reviser),
        ] {
            table.row([name.to_owned(), format!("{:.1}", 1000.0 * seconds), share(seconds / all)]);
        }
        table
    }
}

impl Bench {
    /// Speed and latency of each system.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "system",
            "sentences/s",
            "words/s",
            "× reference",
            "µs/word median",
            "95 %",
            "99 %",
        ]);
        for system in &self.systems {
            table.row([
                format!("{} {}", system.name(), system.precision),
                format!("{:.1}", system.sentences_per_second.mean),
                format!("{:.0}", system.words_per_second.mean),
                format!("{:.2} ± {:.2}", system.speedup.mean, system.speedup.std),
                format!("{:.0}", system.latency.median),
                format!("{:.0}", system.latency.p95),
                format!("{:.0}", system.latency.p99),
            ]);
        }
        table
    }
}
