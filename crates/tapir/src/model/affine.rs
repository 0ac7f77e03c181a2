//! y = W x + b.

use crate::Result;
use crate::kernels::{self, Matrix};
use crate::tensors::Tensors;

/// A weight matrix and its bias.
pub(crate) struct Affine {
    weight: Matrix,
    bias: Vec<f32>,
}

impl Affine {
    /// Reads `NAME.weight` [outputs, inputs] and `NAME.bias` [outputs].
    pub(crate) fn load(
        tensors: &Tensors,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self> {
        let weight = tensors.matrix(&format!("{name}.weight"), outputs, inputs)?;
        let bias = tensors.values(&format!("{name}.bias"), &[outputs])?;
        Ok(Self { weight, bias })
    }

    pub(crate) fn outputs(&self) -> usize {
        self.weight.outputs()
    }

    pub(crate) fn inputs(&self) -> usize {
        self.weight.inputs()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.weight.bytes() + size_of_val(&*self.bias)
    }

    /// x: [rows, inputs], y: [rows, outputs]. A row's result does not depend on the other rows, to
    /// the bit.
    pub(crate) fn apply(
        &self,
        x: &[f32],
        rows: usize,
        y: &mut [f32],
        scratch: &mut kernels::Scratch,
    ) {
        self.weight.apply(x, rows, &self.bias, y, scratch);
    }
}
