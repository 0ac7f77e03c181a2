//! The vector that every kernel is written with: 16 lanes, whatever the registers are.

use super::isa::Kernel;
use super::lines::LineInt8;
use super::product_int8::INPUTS;

/// Lanes of a vector, and outputs of a panel of weights.
pub(super) const LANES: usize = 16;

/// The most rows any instruction set takes at once.
pub(super) const MOST_ROWS: usize = 12;

/// Operations on 16 lanes: one register of AVX-512, two of AVX2, four of SSE or NEON.
///
/// A value of the type is the proof that the machine has the instructions, so most methods are
/// safe.
pub(super) trait Simd: Copy {
    /// 16 f32.
    type F32: Copy;
    /// 16 sums of products of integers; in parts where the instructions multiply bytes.
    type I32: Copy;

    /// `PANELS[r]` panels of 16 outputs are multiplied with `r + 1` rows at once; 0 ends the list.
    ///
    /// Only 1, 2, 4 and 8 occur. Rows times panels is the number of independent sums in flight,
    /// which must hide the latency of an FMA and fit the registers.
    const PANELS: [usize; MOST_ROWS];
    /// The same for int8.
    const PANELS_INT8: [usize; MOST_ROWS];

    fn splat(self, value: f32) -> Self::F32;
    /// # Safety
    /// `from` is valid for reading 16 f32.
    unsafe fn load(self, from: *const f32) -> Self::F32;
    fn store(self, v: Self::F32, to: &mut [f32; LANES]);

    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// a * b + c, fused where the machine can.
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// The greater one; `b` if either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The smaller one; `b` if either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn abs(self, v: Self::F32) -> Self::F32;
    /// `v`, which is not negative, with the sign of `sign`.
    fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32;
    /// 2^n for whole numbers n of -126..=127, in one rounding-free step.
    fn pow2(self, n: Self::F32) -> Self::F32;
    /// The sum of the lanes, halves added to halves, in the same order everywhere.
    fn sum(self, v: Self::F32) -> f32;

    fn zero_i32(self) -> Self::I32;
    fn to_f32(self, v: Self::I32) -> Self::F32;
    /// Put a row of quantised activations, [inputs / 4, 4], into the order of bytes in which
    /// [`Simd::dot_lines`] reads them. Whatever it is, a line keeps its place.
    #[inline(always)]
    fn arrange(self, _row: &mut [[i16; INPUTS]]) {}
    /// Add the products of some lines of weights with `R` rows of activations, which lie side by
    /// side: `sums[r][p] += weights[p][..lines] * x[..lines][r]`.
    ///
    /// The first line is an even one of its panel, and so is the number of lines, unless they are
    /// the panel's last. [`pairs`](super::pairs) has it for products of i16.
    ///
    /// # Safety
    /// `weights` is valid for reading `lines` lines at each of `P` places that are `apart` lines
    /// apart, and `x`, which is [lines, R], for as many.
    unsafe fn dot_lines<const R: usize, const P: usize>(
        self,
        sums: &mut [[Self::I32; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    );

    /// Run a kernel as a function of its own, compiled for these instructions.
    fn apart<K: Kernel>(self, kernel: K) -> K::Output;

    /// Ask for the cache line at this address, which need not be valid.
    fn prefetch(self, address: *const u8);

    /// Load 16 lanes that the type system knows to be there.
    #[inline(always)]
    fn read(self, from: &[f32; LANES]) -> Self::F32 {
        // SAFETY: the array has 16 elements.
        unsafe { self.load(from.as_ptr()) }
    }
}
