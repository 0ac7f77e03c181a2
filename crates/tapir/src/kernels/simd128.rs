//! 16 lanes as four registers of WebAssembly's simd128.
//!
//! A module that has these instructions is refused as a whole where the engine lacks them, so that
//! there is nothing to ask at run time: they are there, or this file was not compiled. Nothing here
//! is relaxed SIMD, whose fused products are fused on some machines and not on others: every
//! browser gives the same bits, and f32 gives those of [`Portable`](super::portable::Portable)
//! without FMA.

use std::arch::wasm32::{
    f32x4, f32x4_abs, f32x4_add, f32x4_convert_i32x4, f32x4_div, f32x4_extract_lane, f32x4_mul,
    f32x4_pmax, f32x4_pmin, f32x4_splat, f32x4_sub, i16x8_load_extend_i8x8, i32x4_add,
    i32x4_dot_i16x8, i32x4_shl, i32x4_shuffle, i32x4_splat, v128, v128_and, v128_load,
    v128_load32_splat, v128_or, v128_store,
};

use super::isa::Kernel;
use super::pairs::{Pairwise, lines_of_pairs};
use super::simd::{LANES, MOST_ROWS, Simd};

/// The instructions are there, for this was compiled.
#[derive(Clone, Copy)]
pub(super) struct Simd128;

/// Run a kernel as a function of its own.
#[inline(never)]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Simd128)
}

/// Four registers from those of two values. The closures are no longer than they need be: a function
/// for certain instructions is none itself.
#[inline(always)]
fn zip(a: [v128; 4], b: [v128; 4], f: impl Fn(v128, v128) -> v128) -> [v128; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

impl Simd for Simd128 {
    type F32 = [v128; 4];
    type I32 = [v128; 4];

    // Engines on x86 have 16 registers, of which a sum of 16 lanes takes four.
    const PANELS: [usize; MOST_ROWS] = [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const PANELS_INT8: [usize; MOST_ROWS] = [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        [f32x4_splat(value); 4]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F32 {
        // SAFETY: the caller gives 16 readable f32; loads need no alignment.
        unsafe {
            [
                v128_load(from.cast()),
                v128_load(from.add(4).cast()),
                v128_load(from.add(8).cast()),
                v128_load(from.add(12).cast()),
            ]
        }
    }
    #[inline(always)]
    fn store(self, v: Self::F32, to: &mut [f32; LANES]) {
        for (to, v) in to.as_chunks_mut::<4>().0.iter_mut().zip(v) {
            // SAFETY: four f32 that are ours.
            unsafe { v128_store(to.as_mut_ptr().cast(), v) };
        }
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| f32x4_add(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| f32x4_sub(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| f32x4_mul(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| f32x4_div(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        self.add(self.mul(a, b), c)
    }
    // `pmax(a, b)` is a < b ? b : a, and `pmin` b < a ? b : a: where either is NaN, the first one.
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(b, a, |a, b| f32x4_pmax(a, b))
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(b, a, |a, b| f32x4_pmin(a, b))
    }
    #[inline(always)]
    fn abs(self, v: Self::F32) -> Self::F32 {
        v.map(|v| f32x4_abs(v))
    }
    #[inline(always)]
    fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32 {
        let mask = f32x4_splat(-0.0);
        zip(v, sign, |v, sign| v128_or(v, v128_and(mask, sign)))
    }
    #[inline(always)]
    fn pow2(self, n: Self::F32) -> Self::F32 {
        // Adding 1.5 * 2^23 leaves n in the low bits; shifting drops all but n and the bias.
        let (round, bias) = (f32x4_splat(12_582_912.0), i32x4_splat(127));
        n.map(|n| i32x4_shl(i32x4_add(f32x4_add(n, round), bias), 23))
    }
    #[inline(always)]
    fn sum(self, v: Self::F32) -> f32 {
        let four = f32x4_add(f32x4_add(v[0], v[2]), f32x4_add(v[1], v[3]));
        let two = f32x4_add(four, i32x4_shuffle::<2, 3, 0, 1>(four, four));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }
    #[inline(always)]
    fn zero_i32(self) -> Self::I32 {
        [f32x4(0.0, 0.0, 0.0, 0.0); 4]
    }
    #[inline(always)]
    fn to_f32(self, v: Self::I32) -> Self::F32 {
        v.map(|v| f32x4_convert_i32x4(v))
    }

    lines_of_pairs! {}
    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        run_apart(kernel)
    }
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}
}

impl Pairwise for Simd128 {
    type Pairs = [v128; 4];

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const i8) -> Self::Pairs {
        // SAFETY: the caller gives 32 readable bytes.
        unsafe {
            [
                i16x8_load_extend_i8x8(from),
                i16x8_load_extend_i8x8(from.add(8)),
                i16x8_load_extend_i8x8(from.add(16)),
                i16x8_load_extend_i8x8(from.add(24)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn splat_pair(self, from: *const [i16; 2]) -> Self::Pairs {
        // SAFETY: the caller gives a readable pair; the load needs no alignment.
        [unsafe { v128_load32_splat(from.cast()) }; 4]
    }
    #[inline(always)]
    fn dot_pairs(self, acc: Self::I32, a: Self::Pairs, b: Self::Pairs) -> Self::I32 {
        let products = zip(a, b, |a, b| i32x4_dot_i16x8(a, b));
        zip(acc, products, |a, b| i32x4_add(a, b))
    }
}
