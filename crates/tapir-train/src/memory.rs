//! The memory (§3.1): φ of every step, from what was read and what the first pass answered.
//!
//! The reviser does not run in training, so that φ always comes from first-pass logits.

use burn::tensor::{Tensor, activation::tanh};

use crate::Leaves;
use crate::affine::Affine;

pub(crate) struct Memory {
    /// [labels, H], eq. 2
    z: Affine,
    /// [2H, C], eq. 3, acting on [h ; z]
    phi: Affine,
}

impl Memory {
    pub(crate) fn new(leaves: &Leaves) -> Self {
        Self { z: Affine::new(leaves, "memory.z"), phi: Affine::new(leaves, "memory.phi") }
    }

    /// h [rows, H] and raw logits [rows, labels] to φ [rows, C].
    pub(crate) fn forward(&self, h: Tensor<2>, logits: Tensor<2>) -> Tensor<2> {
        let z = tanh(self.z.forward(logits));
        tanh(self.phi.forward(Tensor::cat(vec![h, z], 1)))
    }
}
