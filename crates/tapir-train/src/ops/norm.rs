//! Layer normalisation, in the two forms that revisers use.

use super::{Array, Function};

/// Which normalisation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    /// Divide by (unbiased standard deviation + ε) instead of the root of (biased variance + ε)?
    pub(crate) unbiased: bool,
    /// ε
    pub(crate) epsilon: f32,
}

#[derive(Clone, Debug)]
pub(super) struct Saved {
    x: Array,
    weight: Array,
    /// Mean, and what the centred row is multiplied by.
    rows: Vec<(f32, f32)>,
}

impl Function<3> for Norm {
    type Saved = Saved;

    fn forward(&self, inputs: [Array; 3]) -> (Array, Saved) {
        pulp::Arch::new().dispatch(|| self.forward_rows(inputs))
    }

    fn backward(&self, saved: Saved, grad: Array) -> [Array; 3] {
        pulp::Arch::new().dispatch(|| self.backward_rows(saved, grad))
    }
}

// Inlined into what `dispatch` compiles for the machine that runs it.
#[allow(clippy::inline_always)]
impl Norm {
    #[inline(always)]
    fn forward_rows(self, [x, weight, bias]: [Array; 3]) -> (Array, Saved) {
        let d = x.cols();
        let mut out = Vec::with_capacity(x.data().len());
        let mut rows = Vec::with_capacity(x.rows());
        for row in x.data().chunks_exact(d) {
            let mean = sum(row, |v| v) / d as f32;
            let squares = sum(row, |v| (v - mean) * (v - mean));
            let factor = if self.unbiased {
                1.0 / ((squares / (d.max(2) - 1) as f32).sqrt() + self.epsilon)
            } else {
                1.0 / (squares / d as f32 + self.epsilon).sqrt()
            };
            let affine = weight.data().iter().zip(bias.data());
            out.extend(row.iter().zip(affine).map(|(v, (w, b))| (v - mean) * factor * w + b));
            rows.push((mean, factor));
        }
        (Array::new(out, x.rows(), d), Saved { x, weight, rows })
    }

    #[inline(always)]
    fn backward_rows(self, saved: Saved, grad: Array) -> [Array; 3] {
        let Saved { x, weight, rows } = saved;
        let d = x.cols();
        let (mut d_x, mut d_weight, mut d_bias) =
            (Vec::with_capacity(x.data().len()), vec![0.0; d], vec![0.0; d]);
        let mut d_y = vec![0.0; d];
        for ((row, grad), (mean, factor)) in
            x.data().chunks_exact(d).zip(grad.data().chunks_exact(d)).zip(rows)
        {
            for j in 0..d {
                d_weight[j] += grad[j] * (row[j] - mean) * factor;
                d_bias[j] += grad[j];
                d_y[j] = grad[j] * weight.data()[j];
            }
            // y = (x - μ) r: dx = r (dy - mean dy) + (x - μ) Σ dy (x - μ) · dr/dΣ(x - μ)²·2
            let total = sum(&d_y, |v| v) / d as f32;
            let mut lanes = [0.0; 8];
            let (chunks, rest) = row.as_chunks::<8>();
            let (d_chunks, d_rest) = d_y.as_chunks::<8>();
            for (chunk, d) in chunks.iter().zip(d_chunks) {
                for j in 0..8 {
                    lanes[j] += (chunk[j] - mean) * d[j];
                }
            }
            let dot = lanes.iter().sum::<f32>()
                + rest.iter().zip(d_rest).map(|(v, d)| (v - mean) * d).sum::<f32>();
            let slope = if self.unbiased {
                // r = 1 / (σ + ε), σ² = Σ / (d - 1)
                let sigma = (1.0 / factor - self.epsilon).max(f32::MIN_POSITIVE);
                factor * factor / (sigma * (d.max(2) - 1) as f32)
            } else {
                factor * factor * factor / d as f32
            };
            d_x.extend(
                row.iter().zip(&d_y).map(|(v, d)| factor * (d - total) - (v - mean) * dot * slope),
            );
        }
        [Array::new(d_x, x.rows(), d), Array::new(d_weight, 1, d), Array::new(d_bias, 1, d)]
    }
}

/// A sum in eight lanes, which the compiler keeps in vector registers.
#[allow(clippy::inline_always)]
#[inline(always)]
fn sum(row: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = row.as_chunks::<8>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f(*value));
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|value| f(*value)).sum::<f32>()
}
