//! Layer normalisation, in the two forms that the authors' revisers use, and in that of a
//! pretrained one.

use crate::kernels;
use crate::tensors::Tensors;
use crate::{NormKind, Result, ReviserConfig};

const EPSILON: f32 = 1e-5;

pub(super) struct Norm {
    form: Form,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// What computes it.
enum Form {
    /// Plain loops: every model that was trained with them keeps its bits.
    Loops(NormKind),
    /// A kernel, with the ε that the encoder was trained with.
    Kernel { epsilon: f32 },
}

impl Norm {
    pub(super) fn load(tensors: &Tensors, name: &str, sizes: &ReviserConfig) -> Result<Self> {
        let form = match &sizes.bert {
            None => Form::Loops(sizes.norm()),
            Some(bert) => Form::Kernel { epsilon: bert.epsilon },
        };
        let weight = tensors.values(&format!("{name}.weight"), &[sizes.hidden])?;
        let bias = tensors.values(&format!("{name}.bias"), &[sizes.hidden])?;
        Ok(Self { form, weight, bias })
    }

    /// x ← norm(x + y), both [rows, d]: the residual connection of a post-norm layer.
    pub(super) fn add(&self, x: &mut [f32], y: &[f32]) {
        x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        self.apply(x);
    }

    /// x ← norm(x), [rows, d].
    pub(super) fn apply(&self, x: &mut [f32]) {
        match self.form {
            Form::Loops(kind) => self.apply_plain(x, kind),
            Form::Kernel { epsilon } => kernels::layer_norm(x, &self.weight, &self.bias, epsilon),
        }
    }

    fn apply_plain(&self, x: &mut [f32], kind: NormKind) {
        let d = self.weight.len();
        for row in x.chunks_exact_mut(d) {
            let mean = sum(row, |value| value) / d as f32;
            let squares = sum(row, |value| (value - mean) * (value - mean));
            let factor = match kind {
                // With d = 1 the unbiased deviation is 0/0; its limit, dividing by ε alone, keeps
                // the row finite.
                NormKind::UnbiasedStd => 1.0 / ((squares / (d.max(2) - 1) as f32).sqrt() + EPSILON),
                NormKind::Standard => 1.0 / (squares / d as f32 + EPSILON).sqrt(),
            };
            for (value, (weight, bias)) in row.iter_mut().zip(self.weight.iter().zip(&self.bias)) {
                *value = (*value - mean) * factor * weight + bias;
            }
        }
    }
}

/// A sum in eight lanes, which the compiler keeps in vector registers.
fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = row.as_chunks::<8>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f(*value));
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| f(*value)).sum::<f32>()
}
