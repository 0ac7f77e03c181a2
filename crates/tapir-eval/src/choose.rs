//! The threshold that is best under a user's constraint, chosen on validation.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tapir::Config;

use crate::table::tau;
use crate::{Error, Evaluation, Result, Sweep};

/// What a threshold must satisfy, written `within=0.5,revisions=0.1,overhead=0.05` (any of them).
///
/// `revisions` and `overhead` are limits, which never to revise always keeps. Under them the
/// cheapest threshold wins whose score is `within` reach of the better pass: fewest revisions, then
/// least edit overhead. Where there is none, or `within` is not asked for, the best score wins, which
/// is never below that of the first pass alone.
///
/// ```
/// let constraint: tapir_eval::Constraint = "within=0.5".parse()?;
/// assert_eq!(constraint.within, Some(0.5));
/// # Ok::<(), tapir_eval::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    /// The score is at most so many points (of 100) below that of the better pass, as far as the
    /// limits let it: the reviser at every word (τ = 0) or the first pass alone (τ = 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// At most this share of words triggers a revision: 0.1 is one in ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<f64>,
    /// The mean edit overhead is at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
}

impl FromStr for Constraint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut constraint = Self::default();
        for part in text.split(',') {
            let bad = |reason: &str| {
                Error::Constraint(format!(
                    "`{part}` {reason}; expected within=POINTS, revisions=SHARE or overhead=SHARE, \
                     such as within=0.5 or revisions=0.1, joined by commas"
                ))
            };
            let (name, value) = part.split_once('=').ok_or_else(|| bad("has no `=`"))?;
            let value: f64 = value.trim().parse().map_err(|_| bad("has no number after `=`"))?;
            let largest = if name.trim() == "within" { 100.0 } else { 1.0 };
            if !(0.0..=largest).contains(&value) {
                return Err(bad(&format!("is outside 0 to {largest}")));
            }
            match name.trim() {
                "within" => constraint.within = Some(value),
                "revisions" => constraint.revisions = Some(value),
                "overhead" => constraint.overhead = Some(value),
                _ => return Err(bad("is not a constraint")),
            }
        }
        Ok(constraint)
    }
}

/// A threshold and why it was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The threshold τ.
    pub threshold: f32,
    /// What it had to satisfy.
    pub constraint: Constraint,
    /// Its score, in points of 100.
    pub score: f64,
    /// How far that is below the better of the two passes alone, which may be either; negative if
    /// they are better together.
    pub below: f64,
    /// Its mean edit overhead.
    pub edit_overhead: f64,
    /// Its share of REVISE.
    pub revisions: f64,
}

impl Constraint {
    /// Chooses among the thresholds of a sweep, which must include 0 and 1: the score is measured
    /// from the better of the two passes alone, since a reviser is not always that.
    pub fn choose(&self, sweep: &Sweep) -> Result<Choice> {
        let alone = |is: fn(f32) -> bool, pass: &str| {
            let found = sweep.evaluations.iter().find(|e| is(e.setting.threshold));
            found.map(Evaluation::headline).ok_or_else(|| {
                Error::Constraint(format!("the sweep lacks threshold {pass}, to compare with"))
            })
        };
        let reviser = alone(|threshold| threshold <= 0.0, "0, the reviser at every word")?;
        let first_pass = alone(|threshold| threshold >= 1.0, "1, the first pass alone")?;
        let best = reviser.max(first_pass);
        let choices: Vec<Choice> = sweep.evaluations.iter().map(|e| self.weigh(e, best)).collect();
        let allowed = || choices.iter().filter(|choice| self.is_under_limits(choice));
        // Of equals the higher threshold wins: it revises less on other data, too.
        let near = allowed().filter(|choice| self.is_near(choice)).min_by(|a, b| {
            (a.revisions.total_cmp(&b.revisions))
                .then(a.edit_overhead.total_cmp(&b.edit_overhead))
                .then(b.threshold.total_cmp(&a.threshold))
        });
        let best = || {
            allowed().min_by(|a, b| {
                (b.score.total_cmp(&a.score))
                    .then(a.edit_overhead.total_cmp(&b.edit_overhead))
                    .then(b.threshold.total_cmp(&a.threshold))
            })
        };
        near.or_else(best).cloned().ok_or_else(|| {
            let list = choices.iter().map(|choice| {
                format!(
                    "  {}: {:.2} below the better pass, {:.3} revisions, {:.3} edit overhead",
                    tau(choice.threshold),
                    choice.below,
                    choice.revisions,
                    choice.edit_overhead
                )
            });
            let list: Vec<String> = list.collect();
            Error::Constraint(format!(
                "no threshold satisfies the constraint; there are\n{}",
                list.join("\n")
            ))
        })
    }

    fn weigh(&self, evaluation: &Evaluation, best: f64) -> Choice {
        let score = evaluation.headline();
        Choice {
            threshold: evaluation.setting.threshold,
            constraint: *self,
            score: 100.0 * score,
            below: 100.0 * (best - score),
            edit_overhead: evaluation.incremental.edit_overhead.mean,
            revisions: evaluation.actions.revise_share(),
        }
    }

    fn is_near(&self, choice: &Choice) -> bool {
        self.within.is_some_and(|within| choice.below <= within + 1e-9)
    }

    fn is_under_limits(&self, choice: &Choice) -> bool {
        let below =
            |limit: Option<f64>, value: f64| limit.is_none_or(|limit| value <= limit + 1e-9);
        below(self.revisions, choice.revisions) && below(self.overhead, choice.edit_overhead)
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = if self.below < 0.0 { "above" } else { "below" };
        write!(
            f,
            "threshold {:.2}: {:.2} points {side} the better of the two passes alone, {:.3} of the words revised, \
             edit overhead {:.3}",
            self.threshold,
            self.below.abs(),
            self.revisions,
            self.edit_overhead
        )
    }
}

impl Choice {
    /// Makes the threshold the default of the model in `folder`, and notes in its configuration
    /// why.
    pub fn write(&self, folder: &Path) -> Result<()> {
        tapir::amend(folder, |config| self.note(config))?;
        Ok(())
    }

    /// Makes the threshold the default of a configuration, and notes in it why.
    pub fn note(&self, config: &mut Config) {
        config.threshold = self.threshold;
        let why = serde_json::to_value(self).unwrap_or_default();
        config.provenance.insert("threshold".to_owned(), why);
    }
}
