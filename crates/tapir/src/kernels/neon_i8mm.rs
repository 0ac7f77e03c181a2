//! Products of integers by NEON's products of matrices of bytes, two by eight and eight by two.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vaddq_s32, vcombine_s8, vdup_n_s8, vdupq_n_s8, vdupq_n_s32, vld1_s8,
    vld1q_s16, vreinterpretq_s8_s32, vreinterpretq_s32_s8, vshlq_n_s32, vst1q_s8, vuzp1q_s32,
    vuzp2q_s32, vzip1q_s32, vzip2q_s32,
};
use std::arch::asm;

use super::isa::Kernel;
use super::lines::LineInt8;
use super::neon::{Integers, Neon, each};
use super::neon_dotprod::{quad, split, split_line};
use super::product_int8::INPUTS;
use super::simd::MOST_ROWS;

/// One matrix is two outputs with eight inputs, the other the high bytes of eight activations and
/// their low bytes, as for [dot products](super::neon_dotprod): twice as many products to the
/// instruction. To bring eight inputs of an output together from the packing that all share takes
/// as many instructions as that saves (docs/machines.md has the counts); with a packing of its own
/// it should win.
#[derive(Clone, Copy)]
pub(super) struct I8mm;

/// Run a kernel, compiled for NEON with products of matrices.
#[target_feature(enable = "neon,i8mm")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the instructions are enabled here.
    kernel.run(unsafe { Neon::<I8mm>::new() })
}

/// The same, never inlined.
#[inline(never)]
#[target_feature(enable = "neon,i8mm")]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the instructions are enabled here.
    kernel.run(unsafe { Neon::<I8mm>::new() })
}

/// Stands behind a last line, so that there are two.
static NOTHING: LineInt8 = LineInt8([[[0; 2]; 16]; 2]);

/// sums + weights xᵀ, each [2, 2], [2, 8] and [2, 8]. The intrinsic is not stable.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn smmla(mut sums: int32x4_t, weights: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction is enabled here, and touches its registers alone.
    unsafe {
        asm!(
            "smmla {sums:v}.4s, {weights:v}.16b, {x:v}.16b",
            sums = inlateout(vreg) sums,
            weights = in(vreg) weights,
            x = in(vreg) x,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Two times two outputs with their eight inputs, from four outputs with four inputs of each of two
/// lines.
///
/// # Safety
/// NEON is enabled.
#[inline(always)]
unsafe fn octets(first: int8x16_t, second: int8x16_t) -> [int8x16_t; 2] {
    // SAFETY: the caller says so.
    unsafe {
        let [a, b] = [vreinterpretq_s32_s8(first), vreinterpretq_s32_s8(second)];
        [vreinterpretq_s8_s32(vzip1q_s32(a, b)), vreinterpretq_s8_s32(vzip2q_s32(a, b))]
    }
}

/// Add the products of four outputs with all rows: by the output, so that few weights take
/// registers at a time.
///
/// # Safety
/// NEON and its products of matrices are enabled.
#[inline(always)]
unsafe fn add<const R: usize, const P: usize>(
    sums: &mut [[[[int32x4_t; 2]; 4]; P]; R],
    p: usize,
    i: usize,
    w: [int8x16_t; 2],
    x: [int8x16_t; R],
) {
    for r in 0..R {
        for j in 0..2 {
            // SAFETY: the caller says so.
            sums[r][p][i][j] = unsafe { smmla(sums[r][p][i][j], w[j], x[r]) };
        }
    }
}

impl Integers for I8mm {
    /// Two outputs to the register, each with the sum of the high bytes and that of the low ones.
    type Sums = [[int32x4_t; 2]; 4];

    // 32 registers: up to 24 sums of four lanes, some weights and an activation.
    const PANELS: [usize; MOST_ROWS] = [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    fn zero(_: Neon<Self>) -> Self::Sums {
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe { [[vdupq_n_s32(0); 2]; 4] }
    }

    #[inline(always)]
    fn total(_: Neon<Self>, sums: Self::Sums) -> [int32x4_t; 4] {
        let [first, second] = [0, 1].map(|i| sums.map(|pairs| pairs[i]));
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe {
            let high = each!(vuzp1q_s32(first, second));
            let low = each!(vuzp2q_s32(first, second));
            let shift = vshlq_n_s32::<8>;
            let high = each!(shift(high));
            each!(vaddq_s32(high, low))
        }
    }

    /// Two lines as eight high bytes and eight low ones; a last one as for dot products.
    #[inline(always)]
    fn arrange(_: Neon<Self>, row: &mut [[i16; INPUTS]]) {
        let (twos, last) = row.as_chunks_mut::<2>();
        // SAFETY: there is a `Neon`, so NEON is enabled; two lines are a register.
        unsafe {
            for lines in twos {
                let [high, low] = split(vld1q_s16(lines.as_ptr().cast()));
                vst1q_s8(lines.as_mut_ptr().cast(), vcombine_s8(high, low));
            }
            for line in last {
                split_line(line);
            }
        }
    }

    #[inline(always)]
    unsafe fn dot_lines<const R: usize, const P: usize>(
        _: Neon<Self>,
        sums: &mut [[Self::Sums; P]; R],
        weights: *const LineInt8,
        apart: usize,
        x: *const [i16; INPUTS],
        lines: usize,
    ) {
        let mut line = 0;
        while line < lines {
            let is_last = line + 1 == lines;
            // SAFETY: line < lines, and line + 1 too unless it is the last; p < P and r < R. There is
            // a `Neon`, so the instructions are enabled.
            unsafe {
                let mut both = [vdupq_n_s8(0); R];
                for r in 0..R {
                    let first = vld1_s8(x.add(line * R + r).cast());
                    both[r] = if is_last {
                        let bytes = vreinterpretq_s32_s8(vcombine_s8(first, vdup_n_s8(0)));
                        vreinterpretq_s8_s32(vzip1q_s32(bytes, vdupq_n_s32(0)))
                    } else {
                        vcombine_s8(first, vld1_s8(x.add((line + 1) * R + r).cast()))
                    };
                }
                for p in 0..P {
                    let first = weights.add(p * apart + line);
                    let second = if is_last { &raw const NOTHING } else { first.add(1) };
                    for i in 0..4 {
                        add(sums, p, i, octets(quad(first, i), quad(second, i)), both);
                    }
                }
            }
            line += 2;
        }
    }

    #[inline(always)]
    fn apart<K: Kernel>(_: Neon<Self>, kernel: K) -> K::Output {
        // SAFETY: there is a `Neon` with products of matrices, so the machine has them.
        unsafe { run_apart(kernel) }
    }
}
