//! The revision policy (eq. 10).

use burn::tensor::Tensor;

use crate::Leaves;
use crate::affine::Affine;

/// θᵀk + b; the sigmoid is part of the loss.
pub(crate) struct Policy {
    theta: Affine,
}

impl Policy {
    pub(crate) fn new(leaves: &Leaves) -> Self {
        Self { theta: Affine::new(leaves, "policy") }
    }

    /// k [rows, C] to policy logits [rows, 1].
    pub(crate) fn forward(&self, k: Tensor<2>) -> Tensor<2> {
        self.theta.forward(k)
    }
}
