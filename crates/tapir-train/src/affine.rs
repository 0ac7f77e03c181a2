//! y = x W + b.

use burn::tensor::Tensor;

use crate::{Leaves, ops};

/// A weight matrix [inputs, outputs] and its bias [1, outputs].
pub(crate) struct Affine {
    weight: Tensor<2>,
    bias: Tensor<2>,
}

impl Affine {
    /// `NAME.weight` and `NAME.bias`.
    pub(crate) fn new(leaves: &Leaves, name: &str) -> Self {
        Self {
            weight: leaves.get(&format!("{name}.weight")),
            bias: leaves.get(&format!("{name}.bias")),
        }
    }

    /// One piece of several that stand in one tensor on disk.
    pub(crate) fn piece(leaves: &Leaves, name: &str, piece: usize) -> Self {
        Self {
            weight: leaves.get(&format!("{name}.weight.{piece}")),
            bias: leaves.get(&format!("{name}.bias.{piece}")),
        }
    }

    /// x: [rows, inputs] to [rows, outputs].
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::affine(x, self.weight.clone(), self.bias.clone())
    }
}
