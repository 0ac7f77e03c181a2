//! Products with packed f32 weights.

use std::marker::PhantomData;

use super::isa::Kernel;
use super::lines::LineF32;
use super::simd::{LANES, MOST_ROWS, Simd};
use super::tiles::{Ahead, CHUNK, Shape, Tiles, Turn, blocks, bounds};

/// y[r] = W x[r] + bias.
pub(super) struct ProductF32<'a> {
    /// [panels, inputs, 16].
    pub(super) weights: &'a [LineF32],
    /// [rows, inputs].
    pub(super) x: &'a [f32],
    /// Room for `x` with the rows of a block interleaved, [blocks, inputs, rows of the block];
    /// unused for one row.
    pub(super) packed: &'a mut [f32],
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
        if rows > 1 {
            interleave(self.x, self.packed, rows, blocks(rows, &S::PANELS));
        }
        self.compute(s, rows, panels);
    }
}

/// Copy rows so that those of a block lie side by side: a tile then reads them from front to back.
#[inline(always)]
pub(super) fn interleave<T: Copy>(from: &[T], to: &mut [T], rows: usize, blocks: usize) {
    assert_eq!(from.len(), to.len());
    let width = from.len() / rows;
    for block in 0..blocks {
        let (row, end) = bounds(rows, block, blocks);
        let (from, to) = (&from[row * width..end * width], &mut to[row * width..end * width]);
        match end - row {
            1 => to.copy_from_slice(from),
            2 => side_by_side::<T, 2>(from, to),
            3 => side_by_side::<T, 3>(from, to),
            4 => side_by_side::<T, 4>(from, to),
            5 => side_by_side::<T, 5>(from, to),
            6 => side_by_side::<T, 6>(from, to),
            7 => side_by_side::<T, 7>(from, to),
            8 => side_by_side::<T, 8>(from, to),
            9 => side_by_side::<T, 9>(from, to),
            10 => side_by_side::<T, 10>(from, to),
            11 => side_by_side::<T, 11>(from, to),
            12 => side_by_side::<T, 12>(from, to),
            rows => unreachable!("a block of {rows} rows"),
        }
    }
}

/// `R` rows side by side. Front to back, with a number of rows that is known: with strides it was
/// several times slower.
#[inline(always)]
fn side_by_side<T: Copy, const R: usize>(from: &[T], to: &mut [T]) {
    let width = from.len() / R;
    let rows: [&[T]; R] = std::array::from_fn(|r| &from[r * width..][..width]);
    for (k, to) in to.as_chunks_mut::<R>().0[..width].iter_mut().enumerate() {
        for r in 0..R {
            to[r] = rows[r][k];
        }
    }
}

/// The tiles of an instruction set.
pub(super) struct ShapeF32<S>(PhantomData<S>);

impl<S: Simd> Shape for ShapeF32<S> {
    const PANELS: [usize; MOST_ROWS] = S::PANELS;
}

impl Tiles for ProductF32<'_> {
    type Shape<S: Simd> = ShapeF32<S>;

    #[inline(always)]
    fn tile<S: Simd, const R: usize, const P: usize>(
        &mut self,
        s: S,
        row: usize,
        panel: usize,
        turn: Turn,
    ) {
        let inputs = self.inputs;
        let weights = self.weights[panel * inputs..(panel + P) * inputs].as_ptr();
        let x = if self.rows > 1 { &*self.packed } else { self.x };
        let x = x[row * inputs..(row + R) * inputs].as_ptr();
        let mut ahead = Ahead::new(turn, weights.wrapping_add(P * inputs), P * inputs);
        let mut sums = [[s.splat(0.0); P]; R];
        let mut k = 0;
        while k < inputs {
            // One row reads several panels at once, which keeps memory busy by itself.
            if R > 1 {
                ahead.look::<S, P>(s);
            }
            let end = inputs.min(k + CHUNK);
            while k < end {
                // SAFETY: k < inputs, p < P and r < R, and the slices above are P * inputs lines
                // and R * inputs numbers long.
                unsafe {
                    let mut w = [s.splat(0.0); P];
                    for p in 0..P {
                        w[p] = s.load(weights.add(p * inputs + k).cast());
                    }
                    for r in 0..R {
                        let x = s.splat(*x.add(k * R + r));
                        for p in 0..P {
                            sums[r][p] = s.fma(w[p], x, sums[r][p]);
                        }
                    }
                }
                k += 1;
            }
        }
        let bias = self.bias.get(panel * LANES..).unwrap_or_default();
        for r in 0..R {
            let y = &mut self.y[(row + r) * self.outputs..][..self.outputs][panel * LANES..];
            for p in 0..P {
                write(s, sums[r][p], &bias[bias.len().min(p * LANES)..], &mut y[p * LANES..]);
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
            let mut last = [0.0; LANES];
            s.store(sums, &mut last);
            write_last(&last, bias, y);
        }
    }
}

/// The same for a panel with fewer outputs. Not inlined: it would be most of the code of a tile, and
/// is called once per row.
#[cold]
#[inline(never)]
fn write_last(sums: &[f32; LANES], bias: &[f32], y: &mut [f32]) {
    if bias.is_empty() {
        y.copy_from_slice(&sums[..y.len()]);
    } else {
        for ((y, sum), bias) in y.iter_mut().zip(sums).zip(bias) {
            *y = sum + bias;
        }
    }
}
