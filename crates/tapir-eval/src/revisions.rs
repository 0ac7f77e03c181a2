//! The revisions of a corpus: how good they are against the final outputs and against gold.

use serde::{Deserialize, Serialize};
use tapir::Action;

use crate::f1::ratio;
use crate::{Dataset, Record, RevisionQuality, SentenceRun};

/// What the recomputations of a record did: totals over its sentences.
///
/// A step *recomputes* if it ran the reviser, which in [`Mode::Restart`](tapir::Mode::Restart) is
/// every step. Sentences with gold labels that the model does not know count like all others: such
/// a label is never right.
///
/// A model with a delay of d words labels its first word at step d + 1, and one word more at every
/// step from then on. Those are the steps that count, and the output before each is its prefix. In
/// the first d steps there is no output to revise or to add to; a recomputation there changes
/// nothing that anybody sees, and is left out. Distances are counted from the newest word that has
/// a label, which is not the newest word read.
///
/// ```
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// use tapir_eval::{Dataset, Record, Revisions, Setting};
/// let sentence = tapir_data::Sentence::new(["play", "jazz"], ["O", "B-genre"]);
/// let dataset = Dataset::of(&model, &[sentence])?;
/// let record = Record::make(&model, &dataset, Setting::of(&model).threshold(0.0), || ())?;
/// let revisions = Revisions::of(&dataset, &record);
/// assert_eq!(revisions.silver.recomputation_share(), Some(1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revisions {
    /// Against the final output of each sentence.
    pub silver: RevisionQuality,
    /// Against the gold labels.
    pub gold: RevisionQuality,
    /// Recomputations that gave any word another label than it had, the newest one included, to
    /// which the first pass has just given a label. None where no first pass ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changing: Option<usize>,
}

impl Revisions {
    /// Measures a record of `dataset`.
    pub fn of(dataset: &Dataset, record: &Record) -> Self {
        let delay = record.setting.delay;
        let pairs = || dataset.examples.iter().zip(&record.runs);
        let quality = |run: &SentenceRun, target: &[u16]| {
            let recomputed: Vec<bool> = recomputed(run, delay).collect();
            RevisionQuality::of(run.outputs.iter(), &recomputed, target)
        };
        Self {
            silver: pairs().map(|(_, run)| quality(run, run.outputs.last())).sum(),
            gold: pairs().map(|(example, run)| quality(run, &example.gold)).sum(),
            changing: pairs().map(|(_, run)| changing(run, delay)).sum(),
        }
    }

    /// The share of recomputations that changed any label, the newest word's included; none without
    /// recomputations, and where no first pass ran.
    pub fn changing_share(&self) -> Option<f64> {
        let all = self.silver.recomputations;
        self.changing.filter(|_| all > 0).map(|changing| ratio(changing, all))
    }
}

/// Which of the steps with an output ran the reviser.
fn recomputed(run: &SentenceRun, delay: usize) -> impl Iterator<Item = bool> {
    run.actions.iter().skip(delay).map(|action| *action == Action::Revise)
}

/// Recomputations after which any label is another one; none if what the first pass said is not
/// known.
fn changing(run: &SentenceRun, delay: usize) -> Option<usize> {
    let mut count = 0;
    for (word, _) in recomputed(run, delay).enumerate().filter(|(_, recomputed)| *recomputed) {
        let newest = run.provisional.get(word + delay).copied().flatten()?;
        let before = word.checked_sub(1).map_or(&[][..], |step| run.outputs.at(step));
        let same = run.outputs.at(word).strip_prefix(before) == Some(&[newest][..]);
        count += usize::from(!same);
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GoldSentence, Outputs, Setting};
    use tapir::Mode;

    /// A sentence whose gold has a label that the model does not know (9).
    fn dataset() -> Dataset {
        let words = ["a", "b", "c"].map(str::to_owned).to_vec();
        Dataset {
            task: String::new(),
            split: String::new(),
            scheme: tapir::Scheme::Plain,
            score: tapir_data::Metric::Accuracy,
            labels: Vec::new(),
            known: 0,
            examples: vec![GoldSentence { words, gold: vec![1, 2, 9], intent: None }],
        }
    }

    /// Of the last three steps the second and the third revise: the second only the newest word, the
    /// third nothing.
    fn record(delay: usize) -> Record {
        let (write, revise) = (Action::Write, Action::Revise);
        let run = SentenceRun {
            outputs: Outputs::new([[3].as_slice(), &[3, 2], &[3, 2, 2]]).unwrap(),
            actions: [vec![revise; delay], vec![write, revise, revise]].concat(),
            policy: vec![Some(0.5); delay + 3],
            provisional: [vec![None; delay], vec![None, Some(4), Some(2)]].concat(),
            intents: Vec::new(),
            nanos: Vec::new(),
        };
        Record { setting: Setting { mode: Mode::TwoPass, threshold: 0.5, delay }, runs: vec![run] }
    }

    #[test]
    fn a_change_of_the_newest_word_is_a_change_and_no_revision() {
        let revisions = Revisions::of(&dataset(), &record(0));
        assert_eq!((revisions.silver.recomputations, revisions.silver.revisions), (2, 0));
        assert_eq!(revisions.changing, Some(1));
        assert_eq!(revisions.changing_share(), Some(0.5));
    }

    #[test]
    fn unknown_gold_labels_are_never_right() {
        let revisions = Revisions::of(&dataset(), &record(0));
        assert_eq!((revisions.silver.correct_outputs, revisions.gold.correct_outputs), (3, 0));
        assert_eq!((revisions.silver.steps, revisions.gold.steps), (3, 3));
    }

    #[test]
    fn steps_without_an_output_do_not_count() {
        let at_once = Revisions::of(&dataset(), &record(0));
        assert_eq!(Revisions::of(&dataset(), &record(2)), at_once);
    }

    #[test]
    fn without_a_first_pass_it_is_not_known_what_changed() {
        let mut record = record(0);
        record.runs[0].provisional = vec![None; 3];
        let revisions = Revisions::of(&dataset(), &record);
        assert_eq!((revisions.changing, revisions.changing_share()), (None, None));
    }
}
