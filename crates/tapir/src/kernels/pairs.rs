//! Products of integers by pairs of i16: for instruction sets that multiply and add two at once.

use super::lines::LineInt8;
use super::product_int8::INPUTS;
use super::simd::Simd;

/// Pairs of inputs in a cache line of weights.
const PAIRS: usize = INPUTS / 2;

/// Operations on pairs of i16.
pub(super) trait Pairwise: Simd {
    /// 16 pairs.
    type Pairs: Copy;

    /// 16 pairs of i8, widened.
    ///
    /// # Safety
    /// `from` is valid for reading 32 bytes.
    unsafe fn load_pairs(self, from: *const i8) -> Self::Pairs;
    /// One pair of i16 in all lanes.
    ///
    /// # Safety
    /// `from` is valid for reading.
    unsafe fn splat_pair(self, from: *const [i16; 2]) -> Self::Pairs;
    /// acc + a.0 * b.0 + a.1 * b.1 in each lane.
    fn dot_pairs(self, acc: Self::I32, a: Self::Pairs, b: Self::Pairs) -> Self::I32;
}

/// [`Simd::dot_lines`] made of pairs.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn dot_lines<S: Pairwise, const R: usize, const P: usize>(
    s: S,
    sums: &mut [[S::I32; P]; R],
    weights: *const LineInt8,
    apart: usize,
    x: *const [i16; INPUTS],
    lines: usize,
) {
    let mut line = 0;
    while line < lines {
        for pair in 0..PAIRS {
            // SAFETY: line < lines, p < P and r < R, and a line of weights holds two rows of 32
            // bytes.
            unsafe {
                let mut w = [s.splat_pair(x.cast()); P];
                for p in 0..P {
                    w[p] = s.load_pairs(weights.add(p * apart + line).cast::<i8>().add(pair * 32));
                }
                for r in 0..R {
                    let x = s.splat_pair(x.add(line * R + r).cast::<[i16; 2]>().add(pair));
                    for p in 0..P {
                        sums[r][p] = s.dot_pairs(sums[r][p], w[p], x);
                    }
                }
            }
        }
        line += 1;
    }
}

/// The parts of [`Simd`] that are the same for all that multiply pairs.
macro_rules! lines_of_pairs {
    () => {
        #[inline(always)]
        unsafe fn dot_lines<const R: usize, const P: usize>(
            self,
            sums: &mut [[Self::I32; P]; R],
            weights: *const super::lines::LineInt8,
            apart: usize,
            x: *const [i16; super::product_int8::INPUTS],
            lines: usize,
        ) {
            // SAFETY: the caller gives what it asks for.
            unsafe { super::pairs::dot_lines(self, sums, weights, apart, x, lines) }
        }
    };
}
pub(super) use lines_of_pairs;
