//! How far a model's answers can be trusted: what was fitted on validation when it was trained.

use serde::{Deserialize, Serialize};

/// What turns a session's evidence into probabilities that hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Calibration {
    /// Is an utterance one of those that the model is for?
    pub in_domain: LogOdds,
}

/// A probability from evidence: σ(scale · evidence + shift).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogOdds {
    /// How much the evidence counts.
    pub scale: f32,
    /// What is added to it.
    pub shift: f32,
}

/// The evidence as it is.
impl Default for LogOdds {
    fn default() -> Self {
        Self { scale: 1.0, shift: 0.0 }
    }
}

impl LogOdds {
    /// The probability for some evidence.
    pub fn probability(self, evidence: f32) -> f32 {
        sigmoid(self.scale * evidence + self.shift)
    }
}

/// σ(z).
pub(crate) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}

/// The logarithm of the odds that an utterance is about one of the intents: ln Σ exp(intents) −
/// outside, the odds of their softmax.
pub(crate) fn evidence(outside: f32, intents: &[f32]) -> f32 {
    let greatest = intents.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = intents.iter().map(|logit| (logit - greatest).exp()).sum();
    greatest + sum.ln() - outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_the_odds_of_the_softmax() {
        let logits: [f32; 4] = [0.3, -1.2, 2.0, 0.7];
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        let (outside, intents) = logits.split_last().expect("four");
        let inside = 1.0 - outside.exp() / sum;
        let said = LogOdds::default().probability(evidence(*outside, intents));
        assert!((said - inside).abs() < 1e-6, "{said} is not {inside}");
    }
}
