//! Products with packed f32 weights.

use super::isa::Kernel;
use super::lines::LineF32;
use super::simd::{LANES, MOST_ROWS, Simd};
use super::tiles::{Tiles, Turn};

/// y[r] = W x[r] + bias.
pub(super) struct ProductF32<'a> {
    /// [panels, inputs, 16].
    pub(super) weights: &'a [LineF32],
    /// [rows, inputs].
    pub(super) x: &'a [f32],
    /// [outputs], or empty for none.
    pub(super) bias: &'a [f32],
    /// [rows, outputs].
    pub(super) y: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Kernel for ProductF32<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (rows, panels) = (self.rows, self.outputs.div_ceil(LANES));
        assert_eq!(self.weights.len(), panels * self.inputs);
        assert_eq!(self.x.len(), rows * self.inputs);
        self.compute(s, rows, panels);
    }
}

impl<S: Simd> Tiles<S> for ProductF32<'_> {
    const PANELS: [usize; MOST_ROWS] = S::PANELS;

    #[inline(always)]
    fn tile<const R: usize, const P: usize>(&mut self, s: S, row: usize, panel: usize, turn: Turn) {
        let inputs = self.inputs;
        let weights = self.weights[panel * inputs..(panel + P) * inputs].as_ptr();
        let x = self.x[row * inputs..(row + R) * inputs].as_ptr();
        let next = weights.wrapping_add(P * inputs);
        let mut sums = [[s.splat(0.0); P]; R];
        for k in 0..inputs {
            if R > 1 {
                turn.prefetch(s, next, P, inputs, k);
            }
            // SAFETY: k < inputs, p < P and r < R, and the slices above are P * inputs lines and R * inputs
            // numbers long.
            unsafe {
                let mut w = [s.splat(0.0); P];
                for p in 0..P {
                    w[p] = s.load(weights.add(p * inputs + k).cast());
                }
                for r in 0..R {
                    let x = s.splat(*x.add(r * inputs + k));
                    for p in 0..P {
                        sums[r][p] = s.fma(w[p], x, sums[r][p]);
                    }
                }
            }
        }
        for r in 0..R {
            for p in 0..P {
                let output = (panel + p) * LANES;
                let y = &mut self.y[(row + r) * self.outputs..][..self.outputs][output..];
                write(s, sums[r][p], self.bias.get(output..).unwrap_or_default(), y);
            }
        }
    }
}

/// Write a panel's sums plus bias, as many as there are outputs left.
#[inline(always)]
pub(super) fn write<S: Simd>(s: S, sums: S::F32, bias: &[f32], y: &mut [f32]) {
    let whole = y.first_chunk_mut::<LANES>();
    match (whole, bias.first_chunk::<LANES>()) {
        (Some(y), Some(bias)) => s.store(s.add(sums, s.read(bias)), y),
        (Some(y), None) if bias.is_empty() => s.store(sums, y),
        _ => {
            let n = y.len().min(LANES);
            let mut last = [0.0; LANES];
            s.store(sums, &mut last);
            if !bias.is_empty() {
                for (v, b) in last.iter_mut().zip(bias) {
                    *v += b;
                }
            }
            y[..n].copy_from_slice(&last[..n]);
        }
    }
}
