//! The revision policy (eqs. 10 and 11): WRITE or REVISE.

use crate::kernels;
use crate::tensors::Tensors;
use crate::{Action, Result};

/// σ(θᵀk + b)
pub(crate) struct Policy {
    theta: Vec<f32>,
    bias: f32,
}

impl Policy {
    pub(crate) fn load(tensors: &Tensors, hidden: usize) -> Result<Self> {
        let theta = tensors.values("policy.weight", &[1, hidden])?;
        let bias = tensors.values("policy.bias", &[1])?[0];
        Ok(Self { theta, bias })
    }

    /// The policy value for the controller's k.
    pub(crate) fn value(&self, k: &[f32]) -> f32 {
        let mut value = [kernels::dot(&self.theta, k) + self.bias];
        kernels::sigmoid(&mut value);
        value[0]
    }
}

impl Action {
    /// What the policy chooses (eq. 11): REVISE when its value reaches the threshold τ; τ = 1 never
    /// revises, τ = 0 always does.
    ///
    /// ```
    /// use tapir::Action;
    /// assert_eq!(Action::decide(0.7, 0.5), Action::Revise);
    /// assert_eq!(Action::decide(1.0, 1.0), Action::Write);
    /// ```
    pub fn decide(value: f32, threshold: f32) -> Self {
        // A sigmoid can round to exactly 1, so τ = 1 needs a rule of its own.
        if threshold <= 0.0 || (threshold < 1.0 && value >= threshold) {
            Self::Revise
        } else {
            Self::Write
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_threshold_hold_whatever_the_value() {
        for value in [0.0, 0.5, 1.0, f32::NAN] {
            assert_eq!(Action::decide(value, 0.0), Action::Revise);
            assert_eq!(Action::decide(value, 1.0), Action::Write);
        }
        assert_eq!(Action::decide(0.5, 0.5), Action::Revise);
        assert_eq!(Action::decide(0.499, 0.5), Action::Write);
    }
}
