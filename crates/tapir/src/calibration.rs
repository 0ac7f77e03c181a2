//! How far a model's answers can be trusted: what was fitted on validation when it was trained.
//!
//! Every number here is the probability of a logistic regression: σ(w · x), where x is what a
//! session knows ([`Evidence`]). Fitting is the work of `tapir-eval`; a session only multiplies.

use serde::{Deserialize, Serialize};

/// What turns a session's evidence into probabilities that hold. What is missing was not fitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Calibration {
    /// Will a word's label stay? Over [`Evidence::labels`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Logistic<7>>,
    /// Will a span stay as it is? Over 1, the log-odds of the label that is least likely to stay
    /// (of its words and the one after it), and 1 if no word follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spans: Option<Logistic<3>>,
    /// Will the intent stay? Over [`Evidence::intent`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Logistic<5>>,
    /// How much the first pass's evidence for the intent counts after a revision, above 0 up to 1;
    /// as it is, unless it was fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f32>,
    /// Is an utterance one of those that the model is for? Over 1 and [`Evidence::in_domain`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_domain: Option<Logistic<2>>,
}

/// What a session knows that says whether its answers will stay: numbers, the first always 1.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Evidence {
    /// Of each label that is still held: 1, by how much its logit is above the best other one,
    /// ln(1 + words read since), is it the newest (1 or 0), has no revision read the word (1 or 0),
    /// the log-odds of the last policy value (0 after a revision), was the last step a revision
    /// (1 or 0).
    pub labels: Vec<[f32; 7]>,
    /// Of the intent, if there is one: 1, by how much its logit is above the second best,
    /// ln(words), the log-odds of the last policy value (0 after a revision), was the last step a
    /// revision (1 or 0).
    pub intent: Option<[f32; 5]>,
    /// The log-odds, as the intents' heads have it, that the utterance is one for the model.
    pub in_domain: Option<f32>,
}

impl Evidence {
    /// What a span's stability is made of ([`Calibration::spans`]): `labels` are the log-odds that
    /// the labels of its words stay, and that of the word after it, unless it is `open`, without a
    /// word that follows.
    pub fn of_span(labels: impl Iterator<Item = f32>, open: bool) -> [f32; 3] {
        [1.0, labels.fold(f32::INFINITY, f32::min), f32::from(u8::from(open))]
    }
}

/// The weights of a logistic regression over `N` numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f32>", into = "Vec<f32>")]
pub struct Logistic<const N: usize>(pub [f32; N]);

impl<const N: usize> Logistic<N> {
    /// w · x, the logarithm of the odds.
    pub fn log_odds(&self, x: &[f32; N]) -> f32 {
        self.0.iter().zip(x).map(|(w, x)| w * x).sum()
    }

    /// σ(w · x).
    pub fn probability(&self, x: &[f32; N]) -> f32 {
        sigmoid(self.log_odds(x))
    }
}

impl<const N: usize> From<Logistic<N>> for Vec<f32> {
    fn from(weights: Logistic<N>) -> Self {
        weights.0.to_vec()
    }
}

impl<const N: usize> TryFrom<Vec<f32>> for Logistic<N> {
    type Error = String;

    fn try_from(weights: Vec<f32>) -> Result<Self, String> {
        let count = weights.len();
        let weights: [f32; N] =
            weights.try_into().map_err(|_| format!("{count} weights, expected {N}"))?;
        match weights.iter().find(|weight| !weight.is_finite()) {
            Some(weight) => Err(format!("the weight {weight}, expected a number")),
            None => Ok(Self(weights)),
        }
    }
}

/// σ(z).
pub(crate) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}

/// ln(p / (1 − p)), within bounds where p is 0 or 1.
pub(crate) fn log_odds(p: f32) -> f32 {
    const LEAST: f32 = 1e-4;
    ((p + LEAST) / (1.0 - p + LEAST)).ln()
}

/// By how much a logit is above the best of the others, within bounds: beyond them nothing changes.
pub(crate) fn margin(logits: &[f32], id: usize) -> f32 {
    let others = logits[..id].iter().chain(&logits[id + 1..]);
    let best = others.copied().fold(f32::NEG_INFINITY, f32::max);
    (logits[id] - best).clamp(-10.0, 20.0)
}

/// The logarithm of the odds that an utterance is about one of the intents: ln Σ exp(intents) −
/// outside, the odds of their softmax.
pub(crate) fn inside(outside: f32, intents: &[f32]) -> f32 {
    let greatest = intents.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = intents.iter().map(|logit| (logit - greatest).exp()).sum();
    greatest + sum.ln() - outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_odds_of_being_inside_are_those_of_the_softmax() {
        let logits: [f32; 4] = [0.3, -1.2, 2.0, 0.7];
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        let (outside, intents) = logits.split_last().expect("four");
        let expected = 1.0 - outside.exp() / sum;
        let said = sigmoid(inside(*outside, intents));
        assert!((said - expected).abs() < 1e-6, "{said} is not {expected}");
    }

    #[test]
    fn a_margin_is_over_the_best_other_logit() {
        assert!((margin(&[1.0, 3.0, 2.5], 1) - 0.5).abs() < 1e-6);
        assert!((margin(&[1.0, 3.0, 2.5], 0) + 2.0).abs() < 1e-6);
        assert!((margin(&[1.0], 0) - 20.0).abs() < 1e-6, "nothing else can be said");
    }

    #[test]
    fn weights_are_as_many_as_there_is_evidence() {
        let read = |json| serde_json::from_str::<Calibration>(json);
        let in_domain = read(r#"{"in_domain": [0.5, 2.0]}"#).unwrap().in_domain.unwrap();
        assert!((in_domain.log_odds(&[1.0, 1.5]) - 3.5).abs() < 1e-6);
        let error = read(r#"{"in_domain": [0.5]}"#).unwrap_err().to_string();
        assert!(error.contains("1 weights, expected 2"), "{error}");
        assert!(read(r#"{"in_domain": [1e99, 1.0]}"#).is_err());
    }
}
