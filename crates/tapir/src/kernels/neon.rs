//! 16 lanes as four registers of NEON, for any way to multiply integers.

use std::arch::aarch64::{
    float32x4_t, int8x16x2_t, int16x4_t, int16x8_t, int32x4_t, vabsq_f32, vadd_f32, vaddq_f32,
    vaddq_s32, vbslq_f32, vcgtq_f32, vcltq_f32, vcvtq_f32_s32, vdivq_f32, vdupq_n_f32, vdupq_n_s32,
    vdupq_n_u32, vfmaq_f32, vget_high_f32, vget_lane_f32, vget_low_f32, vget_low_s8, vget_low_s16,
    vld1_s16, vld1q_f32, vld2q_s8, vmlal_high_lane_s16, vmlal_lane_s16, vmovl_high_s8, vmovl_s8,
    vmulq_f32, vreinterpretq_f32_s32, vreinterpretq_s32_f32, vshlq_n_s32, vst1q_f32, vsubq_f32,
};
use std::arch::asm;
use std::marker::PhantomData;

use super::isa::Kernel;
use super::lines::LineInt8;
use super::product_int8::INPUTS;
use super::simd::{LANES, MOST_ROWS, Simd};

/// Proof that the machine has NEON, and the instructions by which `I` multiplies integers.
#[derive(Clone, Copy)]
pub(super) struct Neon<I>(PhantomData<I>);

impl<I: Integers> Neon<I> {
    /// # Safety
    /// It is used only where the instructions of NEON and of `I` are enabled.
    #[inline(always)]
    pub(super) const unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// A way to multiply integers; the rest is the same for all processors with NEON.
pub(super) trait Integers: Copy {
    /// 16 sums.
    type Sums: Copy;
    /// [`Simd::PANELS_INT8`].
    const PANELS: [usize; MOST_ROWS];

    fn zero(s: Neon<Self>) -> Self::Sums;
    /// The sums as they are: outputs 0 to 3, 4 to 7, …
    fn total(s: Neon<Self>, sums: Self::Sums) -> [int32x4_t; 4];
    /// [`Simd::arrange`].
    fn arrange(s: Neon<Self>, row: &mut [[i16; INPUTS]]);
    /// [`Simd::dot_lines`].
    ///
    /// # Safety
    /// As there.
    unsafe fn dot_lines<const R: usize, const P: usize>(
        s: Neon<Self>,
        sums: &mut [[Self::Sums; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    );
    /// [`Simd::apart`].
    fn apart<K: Kernel>(s: Neon<Self>, kernel: K) -> K::Output;
}

/// An intrinsic for each of four registers.
macro_rules! each {
    ($name:ident($($arg:expr),+)) => {
        [$name($($arg[0]),+), $name($($arg[1]),+), $name($($arg[2]),+), $name($($arg[3]),+)]
    };
}
pub(super) use each;

/// Safe methods over intrinsics, so that the reason is given once.
macro_rules! intrinsics {
    ($(fn $name:ident($self:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)? $body:block)*) => {$(
        #[inline(always)]
        fn $name($self $(, $arg: $ty)*) $(-> $out)? {
            // SAFETY: `self` exists only where the instructions are enabled. The only memory
            // touched is that of references, within their lengths.
            unsafe { $body }
        }
    )*};
}

impl<I: Integers> Simd for Neon<I> {
    type F32 = [float32x4_t; 4];
    type I32 = I::Sums;

    // 32 registers: up to 24 sums of four lanes, the weights and an activation.
    const PANELS: [usize; MOST_ROWS] = [4, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0];
    const PANELS_INT8: [usize; MOST_ROWS] = I::PANELS;

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F32 {
        // SAFETY: the caller gives 16 readable f32.
        unsafe {
            let from = [from, from.add(4), from.add(8), from.add(12)];
            each!(vld1q_f32(from))
        }
    }

    #[inline(always)]
    fn arrange(self, row: &mut [[i16; INPUTS]]) {
        I::arrange(self, row);
    }

    #[inline(always)]
    unsafe fn dot_lines<const R: usize, const P: usize>(
        self,
        sums: &mut [[Self::I32; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    ) {
        // SAFETY: the caller gives what it asks for.
        unsafe { I::dot_lines(self, sums, weights, apart, x, lines) }
    }

    #[inline(always)]
    fn zero_i32(self) -> Self::I32 {
        I::zero(self)
    }

    #[inline(always)]
    fn apart<K: Kernel>(self, kernel: K) -> K::Output {
        I::apart(self, kernel)
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // The intrinsic is not stable. Into the second level, as on x86.
        // SAFETY: a hint, which changes nothing and fails for no address.
        unsafe {
            asm!("prfm pldl2keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags));
        }
    }

    intrinsics! {
        fn splat(self, value: f32) -> Self::F32 { [vdupq_n_f32(value); 4] }
        fn store(self, v: Self::F32, to: &mut [f32; LANES]) {
            let to = to.as_mut_ptr();
            let to = [to, to.add(4), to.add(8), to.add(12)];
            each!(vst1q_f32(to, v));
        }
        fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 { each!(vaddq_f32(a, b)) }
        fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 { each!(vsubq_f32(a, b)) }
        fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 { each!(vmulq_f32(a, b)) }
        fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 { each!(vdivq_f32(a, b)) }
        fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
            each!(vfmaq_f32(c, a, b))
        }
        // The instructions for the greater and the smaller one have other rules for NaN.
        fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            let greater = each!(vcgtq_f32(a, b));
            each!(vbslq_f32(greater, a, b))
        }
        fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            let smaller = each!(vcltq_f32(a, b));
            each!(vbslq_f32(smaller, a, b))
        }
        fn abs(self, v: Self::F32) -> Self::F32 { each!(vabsq_f32(v)) }
        fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32 {
            let mask = [vdupq_n_u32(1 << 31); 4];
            each!(vbslq_f32(mask, sign, v))
        }
        fn pow2(self, n: Self::F32) -> Self::F32 {
            // Adding 1.5 * 2^23 leaves n in the low bits; shifting drops all but n and the bias.
            let (round, bias) = ([vdupq_n_f32(12_582_912.0); 4], [vdupq_n_s32(127); 4]);
            let n = each!(vaddq_f32(n, round));
            let n = each!(vreinterpretq_s32_f32(n));
            let n = each!(vaddq_s32(n, bias));
            let shift = vshlq_n_s32::<23>;
            let n = each!(shift(n));
            each!(vreinterpretq_f32_s32(n))
        }
        fn sum(self, v: Self::F32) -> f32 {
            let v = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
            let v = vadd_f32(vget_low_f32(v), vget_high_f32(v));
            vget_lane_f32::<0>(v) + vget_lane_f32::<1>(v)
        }
        fn to_f32(self, v: Self::I32) -> Self::F32 {
            let v = I::total(self, v);
            each!(vcvtq_f32_s32(v))
        }
    }
}

/// Products of i16 with sums of i32, which every processor with NEON has.
#[derive(Clone, Copy)]
pub(super) struct Widening;

/// Run a kernel, compiled for NEON.
#[target_feature(enable = "neon")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: NEON is enabled here.
    kernel.run(unsafe { Neon::<Widening>::new() })
}

/// The same, never inlined.
#[inline(never)]
#[target_feature(enable = "neon")]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: NEON is enabled here.
    kernel.run(unsafe { Neon::<Widening>::new() })
}

/// The weights of a line, [2, 16, 2], as [4, 16]: by the input, eight outputs to the register.
///
/// # Safety
/// `from` is valid for reading, and NEON is enabled.
#[inline(always)]
unsafe fn widened(from: *const LineInt8) -> [[int16x8_t; 2]; INPUTS] {
    // SAFETY: the caller says so; a line is four registers.
    unsafe {
        let int8x16x2_t(first, second) = vld2q_s8(from.cast());
        let int8x16x2_t(third, fourth) = vld2q_s8(from.cast::<i8>().add(32));
        [
            [vmovl_s8(vget_low_s8(first)), vmovl_high_s8(first)],
            [vmovl_s8(vget_low_s8(second)), vmovl_high_s8(second)],
            [vmovl_s8(vget_low_s8(third)), vmovl_high_s8(third)],
            [vmovl_s8(vget_low_s8(fourth)), vmovl_high_s8(fourth)],
        ]
    }
}

/// Add the products of 16 weights with the activation of the same input.
///
/// # Safety
/// NEON is enabled.
#[inline(always)]
unsafe fn add<const INPUT: i32>(sums: &mut [int32x4_t; 4], w: [int16x8_t; 2], x: int16x4_t) {
    // SAFETY: the caller says so.
    unsafe {
        *sums = [
            vmlal_lane_s16::<INPUT>(sums[0], vget_low_s16(w[0]), x),
            vmlal_high_lane_s16::<INPUT>(sums[1], w[0], x),
            vmlal_lane_s16::<INPUT>(sums[2], vget_low_s16(w[1]), x),
            vmlal_high_lane_s16::<INPUT>(sums[3], w[1], x),
        ];
    }
}

impl Integers for Widening {
    type Sums = [int32x4_t; 4];

    // 32 registers: up to 20 sums of four lanes, the weights and the activations.
    const PANELS: [usize; MOST_ROWS] = [4, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    fn zero(_: Neon<Self>) -> Self::Sums {
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe { [vdupq_n_s32(0); 4] }
    }

    #[inline(always)]
    fn total(_: Neon<Self>, sums: Self::Sums) -> [int32x4_t; 4] {
        sums
    }

    #[inline(always)]
    fn arrange(_: Neon<Self>, _: &mut [[i16; INPUTS]]) {}

    #[inline(always)]
    unsafe fn dot_lines<const R: usize, const P: usize>(
        _: Neon<Self>,
        sums: &mut [[Self::Sums; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    ) {
        for line in 0..lines {
            for p in 0..P {
                // SAFETY: line < lines, p < P and r < R; there is a `Neon`, so NEON is enabled.
                unsafe {
                    let w = widened(weights.add(p * apart + line));
                    for r in 0..R {
                        let x = vld1_s16(x.add(line * R + r).cast());
                        let sums = &mut sums[r][p];
                        add::<0>(sums, w[0], x);
                        add::<1>(sums, w[1], x);
                        add::<2>(sums, w[2], x);
                        add::<3>(sums, w[3], x);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn apart<K: Kernel>(_: Neon<Self>, kernel: K) -> K::Output {
        // SAFETY: there is a `Neon`, so the machine has NEON.
        unsafe { run_apart(kernel) }
    }
}
