//! What changed, and why: the answer to every word.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Label, Settled};

/// What the policy chose for a word (eq. 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Action {
    /// The first pass's label was written; earlier labels stay.
    Write,
    /// The reviser recomputed all labels in the window.
    Revise,
}

/// One label that is new or different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// Index of the word, from 0 at the session's start.
    pub position: usize,
    /// Its label now.
    pub label: Label,
    /// Its label before, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Label>,
    /// The model's probability for the label, in (0, 1].
    pub probability: f32,
    /// The probability that the label will not change any more in this utterance
    /// ([`Session::stability`](crate::Session::stability)); none if the model was not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<f32>,
}

/// What an utterance is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Its label.
    pub label: Label,
    /// The model's probability for it, in (0, 1].
    pub probability: f32,
    /// Is it another one than in the answer before, or the first?
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed: bool,
    /// The probability that it will not change any more in this utterance; none if the model was not
    /// calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<f32>,
    /// The probability that the utterance is one of those that the model is for; none if it did not
    /// learn what is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_domain: Option<f32>,
}

impl Intent {
    /// The least [`in_domain`](Self::in_domain) of an utterance that counts as one for the model.
    pub const LEAST_IN_DOMAIN: f32 = 0.5;

    /// Is the utterance more likely not one of those that the model is for? Then labels and intent
    /// mean nothing.
    pub fn is_outside(&self) -> bool {
        self.in_domain.is_some_and(|probability| probability < Self::LEAST_IN_DOMAIN)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// The difference that one call made to the output.
///
/// Replaying updates in order gives [`Session::labels`](crate::Session::labels) exactly: shorten
/// the list to `length` (a shorter one grows by the edits), then set every edited position.
/// [`Update::apply`] does that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Words read so far (steps taken, the NULL tokens of a delayed model's end included).
    pub step: usize,
    /// What the policy chose for the last word read by this call; none if it read no word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The policy value σ(θᵀk + b) behind the action; none where no policy was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<f32>,
    /// Labels that are new or different, by position.
    pub edits: SmallVec<[Edit; 2]>,
    /// How many words have a label now.
    pub length: usize,
    /// How many labels, from the start, will never be edited again.
    pub committed: usize,
    /// What the utterance is about, as far as it was heard; none if the model knows no intents, or
    /// while it has read no word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// What is settled since the answer before, where that was asked for
    /// ([`SessionOptions::settled`](crate::SessionOptions::settled)); none if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

impl Update {
    /// Did the policy revise at the last word?
    pub fn revised(&self) -> bool {
        self.action == Some(Action::Revise)
    }

    /// Makes the same change to a list of labels that follows the session.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let mut session = model.session();
    /// let mut screen = Vec::new();
    /// for word in ["play", "some", "jazz"] {
    ///     session.push(word)?.apply(&mut screen);
    /// }
    /// assert_eq!(screen, session.labels());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn apply(&self, labels: &mut Vec<Label>) {
        labels.truncate(self.length);
        for edit in &self.edits {
            if edit.position < labels.len() {
                labels[edit.position] = edit.label.clone();
            } else {
                labels.push(edit.label.clone());
            }
        }
    }
}
