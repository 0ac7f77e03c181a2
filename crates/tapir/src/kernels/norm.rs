//! Layer normalisation of rows.

use super::isa::{self, Isa, Kernel, isa};
use super::simd::{LANES, Simd};
use super::vectors::{read_padded, write_part};

struct Norm<'a> {
    /// [rows, d]
    x: &'a mut [f32],
    /// [d]
    weight: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
}

impl Kernel for Norm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { x, weight, bias, epsilon } = self;
        let d = weight.len();
        let (weight, weight_rest) = weight.as_chunks::<LANES>();
        let (bias, bias_rest) = bias.as_chunks::<LANES>();
        for row in x.chunks_exact_mut(d) {
            let (whole, rest) = row.as_chunks_mut::<LANES>();
            let mut sum = read_padded(s, rest, 0.0);
            for x in &*whole {
                sum = s.add(sum, s.read(x));
            }
            let mean = s.sum(sum) / d as f32;
            // What is left over is padded with the mean, which adds nothing to the squares.
            let last = s.sub(read_padded(s, rest, mean), s.splat(mean));
            let mut squares = s.mul(last, last);
            for x in &*whole {
                let off = s.sub(s.read(x), s.splat(mean));
                squares = s.fma(off, off, squares);
            }
            let factor = s.splat(1.0 / (s.sum(squares) / d as f32 + epsilon).sqrt());
            let scaled = |off, weight, bias| s.fma(s.mul(off, factor), weight, bias);
            for (x, (weight, bias)) in whole.iter_mut().zip(weight.iter().zip(bias)) {
                let off = s.sub(s.read(x), s.splat(mean));
                s.store(scaled(off, s.read(weight), s.read(bias)), x);
            }
            let [weight, bias] = [weight_rest, bias_rest].map(|rest| read_padded(s, rest, 0.0));
            write_part(s, scaled(last, weight, bias), rest);
        }
    }
}

/// x ← (x - mean) / √(variance + ε) · weight + bias, in each row of x, `[rows, d]`; weight and bias
/// are `[d]`. A row's result does not depend on the other rows.
pub(crate) fn layer_norm(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    layer_norm_with(isa(), x, weight, bias, epsilon);
}

/// [`layer_norm`] with the given instructions, which must be available.
fn layer_norm_with(isa: Isa, x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    assert!(!weight.is_empty() && weight.len() == bias.len(), "weight and bias are [d]");
    assert!(x.len().is_multiple_of(weight.len()), "x is [rows, d]");
    isa::run(isa, Norm { x, weight, bias, epsilon });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_are_normalised_each_for_itself(
            d in 1_usize..70, rows in 0_usize..4, seed in 0_u32..1000, shift in -100.0_f32..100.0,
        ) {
            let number = |i: usize| ((i as u32 * 7919 + seed) % 2003) as f32 / 1000.0 - 1.0;
            let x: Vec<f32> = (0..rows * d).map(|i| number(i) + shift).collect();
            let [weight, bias] = [5, 9].map(|o| (0..d).map(|i| number(o * i)).collect::<Vec<f32>>());
            for isa in Isa::available() {
                let mut y = x.clone();
                layer_norm_with(isa, &mut y, &weight, &bias, 1e-5);
                for (x, y) in x.chunks(d).zip(y.chunks(d)) {
                    let mut alone = x.to_vec();
                    layer_norm_with(isa, &mut alone, &weight, &bias, 1e-5);
                    prop_assert_eq!(&alone, y, "{}", isa);
                    let mean = x.iter().copied().map(f64::from).sum::<f64>() / d as f64;
                    let squares = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
                    let factor = 1.0 / (squares / d as f64 + 1e-5).sqrt();
                    for (i, (x, y)) in x.iter().zip(y).enumerate() {
                        let off = (f64::from(*x) - mean) * factor;
                        let right = off * f64::from(weight[i]) + f64::from(bias[i]);
                        // The numbers are off by half a unit of what they were shifted to.
                        let bound = 1e-5 * factor.max(1.0) * f64::from(shift.abs().max(1.0));
                        prop_assert!((f64::from(*y) - right).abs() < bound, "{}: {} not {}", isa, y, right);
                    }
                }
            }
        }
    }
}
