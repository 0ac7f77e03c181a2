//! 16 lanes as a plain array, for machines without a kernel of their own.

use super::isa::Kernel;
use super::lines::LineInt8;
use super::product_int8::INPUTS;
use super::simd::{LANES, MOST_ROWS, Simd};

/// Arrays that the compiler vectorises as far as the target allows.
///
/// `WIDE` takes the tile shapes of AVX-512, so that tests run them on any machine.
#[derive(Clone, Copy)]
pub(super) struct Portable<const WIDE: bool = false>;

/// Whether `mul_add` is an instruction; elsewhere it is a slow call into libm.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

/// Adding it to a small number leaves the number, rounded, in the low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn zip(mut a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = f(*a, b);
    }
    a
}

impl<const WIDE: bool> Simd for Portable<WIDE> {
    type F32 = [f32; LANES];
    type I32 = [i32; LANES];

    const PANELS: [usize; MOST_ROWS] =
        if WIDE { super::WIDE_PANELS } else { [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0] };
    const PANELS_INT8: [usize; MOST_ROWS] =
        if WIDE { super::WIDE_PANELS } else { [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0] };

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F32 {
        // SAFETY: the caller gives 16 readable f32; the array has their alignment.
        unsafe { from.cast::<Self::F32>().read() }
    }
    #[inline(always)]
    fn store(self, v: Self::F32, to: &mut [f32; LANES]) {
        *to = v;
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn fma(self, a: Self::F32, b: Self::F32, mut c: Self::F32) -> Self::F32 {
        for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
            *c = if FUSED { a.mul_add(b, *c) } else { a * b + *c };
        }
        c
    }
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn abs(self, v: Self::F32) -> Self::F32 {
        v.map(f32::abs)
    }
    #[inline(always)]
    fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32 {
        zip(v, sign, f32::copysign)
    }
    #[inline(always)]
    fn pow2(self, n: Self::F32) -> Self::F32 {
        n.map(|n| f32::from_bits((n + ROUND).to_bits().wrapping_add(127) << 23))
    }
    #[inline(always)]
    fn sum(self, mut v: Self::F32) -> f32 {
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                v[i] += v[i + half];
            }
        }
        v[0]
    }
    #[inline(always)]
    fn zero_i32(self) -> Self::I32 {
        [0; LANES]
    }
    #[inline(always)]
    fn to_f32(self, v: Self::I32) -> Self::F32 {
        v.map(|v| v as f32)
    }

    /// A line holds two inputs of each output, and then the next two. Sums stay in registers for all
    /// lines, and products are added to their neighbours: in such loops compilers see the
    /// instructions for it.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    unsafe fn dot_lines<const R: usize, const P: usize>(
        self,
        sums: &mut [[Self::I32; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    ) {
        for (r, sums) in sums.iter_mut().enumerate() {
            for (p, sums) in sums.iter_mut().enumerate() {
                let mut sum = *sums;
                for line in 0..lines {
                    // SAFETY: line < lines, p < P and r < R.
                    let (w, x) = unsafe {
                        let w = weights.add(p * apart + line).cast::<[[i8; 2 * LANES]; 2]>();
                        (&*w, *x.add(line * R + r))
                    };
                    for (w, x) in w.iter().zip([[x[0], x[1]], [x[2], x[3]]]) {
                        let mut products = [0; 2 * LANES];
                        for i in 0..2 * LANES {
                            products[i] = i32::from(i16::from(w[i])) * i32::from(x[i % 2]);
                        }
                        for i in 0..LANES {
                            sum[i] += products[2 * i] + products[2 * i + 1];
                        }
                    }
                }
                *sums = sum;
            }
        }
    }
    #[inline(never)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}
}
