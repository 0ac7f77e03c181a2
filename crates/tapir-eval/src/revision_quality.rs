//! How good revisions are, and of what kind: the measures of Madureira et al. (2023), "The Road to
//! Quality is Paved with Good Revisions".

use std::iter::{self, Sum};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::f1::ratio;

/// Counts of what the steps of one sentence did, or of many: totals are sums of counts, and shares
/// are taken of the sums.
///
/// An *edit* gives another label to a word that had one. A *revision* is a step with an edit; every
/// other step is an *addition*, which only labels the new word. The *prefix* of a step is the
/// output that it found. It is correct if all its labels are those of the target, and so is the
/// empty prefix of the first step. The target is the final output ("silver") or the gold labels.
///
/// ```
/// use tapir_eval::{Outputs, RevisionQuality};
/// let outputs = Outputs::new([[3].as_slice(), &[3, 4], &[5, 4, 4]])?;
/// let silver = RevisionQuality::of(outputs.iter(), &[false, true, true], outputs.last());
/// assert_eq!((silver.recomputations, silver.active_recomputations), (2, 1));
/// assert_eq!((silver.revisions, silver.kinds.effective), (1, 1));
/// assert_eq!(silver.revision_pertinence(), Some(1.0)); // it found the wrong 3
/// assert_eq!(silver.revision_appropriateness(), Some(0.5)); // the step before found it, too
/// # Ok::<(), tapir_eval::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionQuality {
    /// All steps.
    pub steps: usize,
    /// Steps that computed the whole output anew.
    pub recomputations: usize,
    /// Recomputations that are revisions.
    pub active_recomputations: usize,
    /// Steps with at least one edit.
    pub revisions: usize,
    /// Additions to a correct prefix.
    pub pertinent_additions: usize,
    /// Edits of all steps.
    pub edits: usize,
    /// Steps whose own output is correct.
    pub correct_outputs: usize,
    /// The revisions by kind.
    pub kinds: RevisionKinds,
}

/// How many revisions are of each kind. Every group divides all revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionKinds {
    /// Effectiveness: the prefix has more correct labels than before.
    pub effective: usize,
    /// Effectiveness: it has fewer.
    pub defective: usize,
    /// Effectiveness: it has as many.
    pub ineffective: usize,

    /// Convenience: the prefix was incorrect.
    pub convenient: usize,
    /// Convenience: the prefix was correct.
    pub inconvenient: usize,

    /// Recurrence: the step before or after is a revision, too.
    pub recurrent: usize,
    /// Recurrence: neither is.
    pub steady: usize,

    /// Oscillation: the sentence has other revisions.
    pub oscillating: usize,
    /// Oscillation: it is the only one.
    pub stable: usize,

    /// Company: one edit.
    pub isolated: usize,
    /// Company: several edits.
    pub accompanied: usize,

    /// Connectedness: every edited word is next to another.
    pub connected: usize,
    /// Connectedness: none is.
    pub disconnected: usize,
    /// Connectedness: some are.
    pub connected_and_disconnected: usize,

    /// Distance: all edits are close to the new word.
    pub short_range: usize,
    /// Distance: none is.
    pub long_range: usize,
    /// Distance: some are.
    pub short_and_long_range: usize,

    /// Definiteness: no revision of the sentence follows.
    pub definite: usize,
    /// Definiteness: another follows.
    pub temporary: usize,

    /// Time: at a step before the last.
    pub intermediate: usize,
    /// Time: at the last step of the sentence.
    pub final_step: usize,
}

impl RevisionQuality {
    /// The usual range: edits of the two words before the new one are of short range.
    pub const SHORT_RANGE: usize = 2;

    /// Measures one sentence against `target`, with the usual range.
    ///
    /// `outputs` holds the labels after each step, of one word more each time; `recomputed` says
    /// which of these steps recomputed. A step without a flag counts as one that did not.
    pub fn of<'a, T: PartialEq + 'a>(
        outputs: impl IntoIterator<Item = &'a [T]>,
        recomputed: &[bool],
        target: &[T],
    ) -> Self {
        Self::with_range(outputs, recomputed, target, Self::SHORT_RANGE)
    }

    /// The same where edits of the `short_range` words before the new one are of short range.
    pub fn with_range<'a, T: PartialEq + 'a>(
        outputs: impl IntoIterator<Item = &'a [T]>,
        recomputed: &[bool],
        target: &[T],
        short_range: usize,
    ) -> Self {
        let outputs: Vec<&[T]> = outputs.into_iter().collect();
        let empty: &[T] = &[];
        let prefixes: Vec<&[T]> = iter::once(empty).chain(outputs.iter().copied()).collect();
        let steps = 0..outputs.len();
        let edits: Vec<Vec<usize>> =
            steps.clone().map(|step| differences(prefixes[step], outputs[step])).collect();
        let revisions: Vec<usize> = steps.clone().filter(|&step| !edits[step].is_empty()).collect();

        let mut quality = Self::default();
        for step in steps {
            let recomputed = recomputed.get(step) == Some(&true);
            let revised = !edits[step].is_empty();
            let correct = target.starts_with(prefixes[step]);
            quality += Self {
                steps: 1,
                recomputations: recomputed.into(),
                active_recomputations: (recomputed && revised).into(),
                revisions: revised.into(),
                pertinent_additions: (correct && !revised).into(),
                edits: edits[step].len(),
                correct_outputs: target.starts_with(outputs[step]).into(),
                kinds: RevisionKinds::default(), // counted next
            };
        }
        for (index, &step) in revisions.iter().enumerate() {
            // How many labels of the prefix are correct: the new word's does not count.
            let correct = |labels: &[T]| {
                labels.iter().zip(target).take(step).filter(|(ours, right)| ours == right).count()
            };
            let (before, after) = (correct(prefixes[step]), correct(outputs[step]));
            let convenient = !target.starts_with(prefixes[step]);
            let recurrent = (index > 0 && revisions[index - 1] + 1 == step)
                || revisions.get(index + 1) == Some(&(step + 1));
            let oscillating = revisions.len() > 1;
            let isolated = edits[step].len() == 1;
            let runs = || edits[step].chunk_by(|left, right| left + 1 == *right);
            let connected = runs().any(|run| run.len() > 1);
            let disconnected = runs().any(|run| run.len() == 1);
            let short = edits[step].iter().any(|word| step - word <= short_range);
            let long = edits[step].iter().any(|word| step - word > short_range);
            let definite = index + 1 == revisions.len();
            let final_step = step + 1 == outputs.len();
            quality.kinds += RevisionKinds {
                effective: (after > before).into(),
                defective: (after < before).into(),
                ineffective: (after == before).into(),
                convenient: convenient.into(),
                inconvenient: (!convenient).into(),
                recurrent: recurrent.into(),
                steady: (!recurrent).into(),
                oscillating: oscillating.into(),
                stable: (!oscillating).into(),
                isolated: isolated.into(),
                accompanied: (!isolated).into(),
                connected: (connected && !disconnected).into(),
                disconnected: (disconnected && !connected).into(),
                connected_and_disconnected: (connected && disconnected).into(),
                short_range: (short && !long).into(),
                long_range: (long && !short).into(),
                short_and_long_range: (short && long).into(),
                definite: definite.into(),
                temporary: (!definite).into(),
                intermediate: (!final_step).into(),
                final_step: final_step.into(),
            };
        }
        quality
    }

    /// Steps without an edit.
    pub fn additions(&self) -> usize {
        self.steps - self.revisions
    }

    /// Steps whose own output is incorrect.
    pub fn incorrect_outputs(&self) -> usize {
        self.steps - self.correct_outputs
    }

    /// Steps that found a correct prefix.
    pub fn correct_prefixes(&self) -> usize {
        self.pertinent_additions + self.kinds.inconvenient
    }

    /// Steps that found an incorrect prefix.
    pub fn incorrect_prefixes(&self) -> usize {
        self.steps - self.correct_prefixes()
    }

    /// The share of recomputations among steps; none without steps.
    pub fn recomputation_share(&self) -> Option<f64> {
        share(self.recomputations, self.steps)
    }

    /// The share of active ones among recomputations; none without recomputations.
    pub fn active_share(&self) -> Option<f64> {
        share(self.active_recomputations, self.recomputations)
    }

    /// The share of revisions among steps; none without steps.
    pub fn revision_share(&self) -> Option<f64> {
        share(self.revisions, self.steps)
    }

    /// The share that `count`, one of the [`kinds`](Self::kinds), has among revisions; none without
    /// revisions.
    pub fn kind_share(&self, count: usize) -> Option<f64> {
        share(count, self.revisions)
    }

    /// R-Pertinence: of the revisions, the share that found an incorrect prefix; none without
    /// revisions.
    pub fn revision_pertinence(&self) -> Option<f64> {
        self.kind_share(self.kinds.convenient)
    }

    /// R-Pertinence of effective revisions: of the revisions, the share that made an incorrect
    /// prefix better; none without effective revisions, as the authors have it.
    pub fn effective_revision_pertinence(&self) -> Option<f64> {
        self.kind_share(self.kinds.effective).filter(|_| self.kinds.effective > 0)
    }

    /// A-Pertinence: of the additions, the share that found a correct prefix; none without
    /// additions.
    pub fn addition_pertinence(&self) -> Option<f64> {
        share(self.pertinent_additions, self.additions())
    }

    /// R-Appropriateness: of the steps that found an incorrect prefix, the share of revisions; none
    /// without such steps.
    pub fn revision_appropriateness(&self) -> Option<f64> {
        share(self.kinds.convenient, self.incorrect_prefixes())
    }

    /// R-Appropriateness of effective revisions: of the steps that found an incorrect prefix, the
    /// share that made it better; none without such steps.
    pub fn effective_revision_appropriateness(&self) -> Option<f64> {
        share(self.kinds.effective, self.incorrect_prefixes())
    }

    /// A-Appropriateness: of the steps that found a correct prefix, the share of additions; none
    /// without steps.
    pub fn addition_appropriateness(&self) -> Option<f64> {
        share(self.pertinent_additions, self.correct_prefixes())
    }

    /// Edit overhead: of the edits, first labels included, the share that is not a first label;
    /// none without steps.
    pub fn edit_overhead(&self) -> Option<f64> {
        share(self.edits, self.edits + self.steps)
    }

    /// Relative correctness: of the outputs, the share that is correct; none without steps.
    pub fn relative_correctness(&self) -> Option<f64> {
        share(self.correct_outputs, self.steps)
    }
}

impl AddAssign for RevisionQuality {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.recomputations += other.recomputations;
        self.active_recomputations += other.active_recomputations;
        self.revisions += other.revisions;
        self.pertinent_additions += other.pertinent_additions;
        self.edits += other.edits;
        self.correct_outputs += other.correct_outputs;
        self.kinds += other.kinds;
    }
}

impl AddAssign for RevisionKinds {
    fn add_assign(&mut self, other: Self) {
        self.effective += other.effective;
        self.defective += other.defective;
        self.ineffective += other.ineffective;
        self.convenient += other.convenient;
        self.inconvenient += other.inconvenient;
        self.recurrent += other.recurrent;
        self.steady += other.steady;
        self.oscillating += other.oscillating;
        self.stable += other.stable;
        self.isolated += other.isolated;
        self.accompanied += other.accompanied;
        self.connected += other.connected;
        self.disconnected += other.disconnected;
        self.connected_and_disconnected += other.connected_and_disconnected;
        self.short_range += other.short_range;
        self.long_range += other.long_range;
        self.short_and_long_range += other.short_and_long_range;
        self.definite += other.definite;
        self.temporary += other.temporary;
        self.intermediate += other.intermediate;
        self.final_step += other.final_step;
    }
}

impl Sum for RevisionQuality {
    fn sum<I: Iterator<Item = Self>>(sentences: I) -> Self {
        let mut total = Self::default();
        sentences.for_each(|sentence| total += sentence);
        total
    }
}

/// The words that have another label after a step than before.
fn differences<T: PartialEq>(before: &[T], after: &[T]) -> Vec<usize> {
    let changed = |(word, (before, after)): (usize, (&T, &T))| (before != after).then_some(word);
    before.iter().zip(after).enumerate().filter_map(changed).collect()
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| ratio(part, whole))
}
