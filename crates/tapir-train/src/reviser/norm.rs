//! Layer normalisation, in the two forms that revisers use.

use burn::tensor::Tensor;
use tapir::{NormKind, ReviserConfig};

use crate::{Leaves, ops};

/// The authors' ε; a pretrained encoder says its own.
const EPSILON: f32 = 1e-5;

pub(super) struct Norm {
    kind: ops::Norm,
    /// [1, d]
    weight: Tensor<2>,
    bias: Tensor<2>,
}

impl Norm {
    pub(super) fn new(leaves: &Leaves, name: &str, sizes: &ReviserConfig) -> Self {
        let kind = ops::Norm {
            unbiased: sizes.norm() == NormKind::UnbiasedStd,
            epsilon: sizes.bert.as_ref().map_or(EPSILON, |bert| bert.epsilon),
        };
        let part = |part: &str| leaves.get(&format!("{name}.{part}"));
        Self { kind, weight: part("weight"), bias: part("bias") }
    }

    /// x: [rows, d].
    pub(super) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::norm(x, self.weight.clone(), self.bias.clone(), self.kind)
    }
}
