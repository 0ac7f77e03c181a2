//! Products with packed int8 weights and activations quantised to 15 bits.

use std::marker::PhantomData;

use super::isa::Kernel;
use super::lines::LineInt8;
use super::product_f32::{interleave, write};
use super::simd::{LANES, MOST_ROWS, Simd};
use super::tiles::{Ahead, CHUNK, Shape, Tiles, Turn, blocks};

/// Inputs of a cache line of weights; rows of activations are padded to it with zeros.
pub(super) const INPUTS: usize = 4;

/// The greatest quantised activation.
const LIMIT: f32 = 16_383.0;

/// Cache lines whose products an i32 holds, whatever the weights: 1024 inputs * 128 * 16383 < 2^31.
const BLOCK: usize = 1024 / INPUTS;

// What `Simd::dot_lines` asks for.
const _: () = assert!(BLOCK.is_multiple_of(CHUNK) && CHUNK.is_multiple_of(2));

/// Rows whose activations are all smaller count as zero: the inverse of their scale would not be
/// finite.
const SMALLEST: f32 = 1e-30;

/// Adding it to a small number leaves the number, rounded, in the low bits.
const ROUND: f32 = 12_582_912.0;

/// y[r] = W x[r] + bias.
///
/// Sums are exact within a block of 1024 inputs, and the few roundings that follow come in the same
/// order, so the result is the same on every machine.
pub(super) struct ProductInt8<'a> {
    /// [panels, inputs / 4, 2, 16, 2].
    pub(super) weights: &'a [LineInt8],
    /// [panels * 16].
    pub(super) scales: &'a [f32],
    /// [rows, inputs].
    pub(super) x: &'a [f32],
    /// Room for quantised activations, [rows, inputs / 4] of what a line of weights is for.
    pub(super) quantized: &'a mut [[i16; INPUTS]],
    /// Room for the same with the rows of a block interleaved; unused for one row.
    pub(super) packed: &'a mut [[i16; INPUTS]],
    /// Room for their scales, [rows].
    pub(super) row_scales: &'a mut [f32],
    /// [outputs], or empty for none.
    pub(super) bias: &'a [f32],
    /// [rows, outputs].
    pub(super) y: &'a mut [f32],
    pub(super) rows: usize,
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Kernel for ProductInt8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (rows, panels) = (self.rows, self.outputs.div_ceil(LANES));
        let lines = self.inputs.div_ceil(INPUTS);
        assert_eq!(self.weights.len(), panels * lines);
        assert_eq!(self.quantized.len(), rows * lines);
        for row in 0..rows {
            let x = &self.x[row * self.inputs..][..self.inputs];
            let quantized = &mut self.quantized[row * lines..][..lines];
            self.row_scales[row] = quantize(x, quantized.as_flattened_mut());
            s.arrange(quantized);
        }
        if rows > 1 {
            interleave(self.quantized, self.packed, rows, blocks(rows, &S::PANELS_INT8));
        }
        self.compute(s, rows, panels);
    }
}

/// Quantise a row, zeros at its end; its scale. A row that is not finite has the scale NaN.
#[inline(always)]
fn quantize(x: &[f32], quantized: &mut [i16]) -> f32 {
    // As bits, without the sign, NaN is greater than infinity and infinity greater than any number.
    let mut greatest = 0;
    for x in x {
        greatest = greatest.max(x.to_bits() & 0x7fff_ffff);
    }
    let greatest = f32::from_bits(greatest);
    let (inverse, scale) = if !greatest.is_finite() {
        (0.0, f32::NAN)
    } else if greatest < SMALLEST {
        (0.0, 0.0)
    } else {
        (LIMIT / greatest, greatest / LIMIT)
    };
    if inverse == 0.0 {
        // What is not finite would leave bits of its own, whose sums an i32 need not hold.
        quantized.fill(0);
        return scale;
    }
    let (whole, rest) = quantized.split_at_mut(x.len());
    for (q, x) in whole.iter_mut().zip(x) {
        *q = (x * inverse + ROUND).to_bits() as i16;
    }
    rest.fill(0);
    scale
}

/// The tiles of an instruction set.
pub(super) struct ShapeInt8<S>(PhantomData<S>);

impl<S: Simd> Shape for ShapeInt8<S> {
    const PANELS: [usize; MOST_ROWS] = S::PANELS_INT8;
}

impl Tiles for ProductInt8<'_> {
    type Shape<S: Simd> = ShapeInt8<S>;

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const P: usize>(
        &mut self,
        s: S,
        row: usize,
        panel: usize,
        turn: Turn,
    ) {
        let lines = self.inputs.div_ceil(INPUTS);
        let weights = self.weights[panel * lines..(panel + P) * lines].as_ptr();
        let x = if self.rows > 1 { &*self.packed } else { &*self.quantized };
        let x = x[row * lines..(row + R) * lines].as_ptr();
        let mut ahead = Ahead::new(turn, weights.wrapping_add(P * lines), P * lines);
        let mut sums = [[s.splat(0.0); P]; R];
        let mut from = 0;
        while from < lines {
            let end = lines.min(from + BLOCK);
            let mut exact = [[s.zero_i32(); P]; R];
            let mut line = from;
            while line < end {
                // One row reads several panels at once, which keeps memory busy by itself.
                if R > 1 {
                    ahead.look::<S, P>(s);
                }
                let chunk = CHUNK.min(end - line);
                // SAFETY: line + chunk <= lines, and the slices above are P * lines cache lines and
                // R * lines inputs of a line long.
                unsafe {
                    let (weights, x) = (weights.add(line), x.add(line * R));
                    s.dot_lines(&mut exact, weights, lines, x, chunk);
                }
                line += chunk;
            }
            for r in 0..R {
                for p in 0..P {
                    sums[r][p] = s.add(sums[r][p], s.to_f32(exact[r][p]));
                }
            }
            from = end;
        }
        for r in 0..R {
            let row_scale = s.splat(self.row_scales[row + r]);
            for p in 0..P {
                let output = (panel + p) * LANES;
                let scales =
                    self.scales[output..].first_chunk().expect("scales are padded to the panel");
                let scaled = s.mul(sums[r][p], s.mul(s.read(scales), row_scale));
                let y = &mut self.y[(row + r) * self.outputs..][..self.outputs][output..];
                write(s, scaled, self.bias.get(output..).unwrap_or_default(), y);
            }
        }
    }
}
