//! Layer normalisation, in the two forms that the authors' revisers use.

use burn::tensor::Tensor;
use tapir::NormKind;

use crate::{Leaves, ops};

pub(super) struct Norm {
    kind: NormKind,
    /// [1, d]
    weight: Tensor<2>,
    bias: Tensor<2>,
}

impl Norm {
    pub(super) fn new(leaves: &Leaves, name: &str, kind: NormKind) -> Self {
        let part = |part: &str| leaves.get(&format!("{name}.{part}"));
        Self { kind, weight: part("weight"), bias: part("bias") }
    }

    /// x: [rows, d].
    pub(super) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        ops::norm(x, self.weight.clone(), self.bias.clone(), self.kind == NormKind::UnbiasedStd)
    }
}
