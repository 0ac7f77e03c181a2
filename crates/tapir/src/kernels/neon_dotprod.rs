//! Products of integers by NEON's dot product, which multiplies four bytes at once.

use std::arch::aarch64::{
    int8x8_t, int8x16_t, int16x8_t, int32x4_t, vaddq_s32, vcombine_s32, vdupq_n_s32, vld1_s8,
    vld1q_s16, vmovn_s16, vreinterpret_s32_s8, vreinterpretq_s8_s16, vreinterpretq_s16_s32,
    vrshrn_n_s16, vshlq_n_s32, vst1q_s16, vzip1_s32, vzip1q_s16, vzip2_s32, vzip2q_s16,
};
use std::arch::asm;

use super::isa::Kernel;
use super::lines::LineInt8;
use super::neon::{Integers, Neon, each};
use super::product_int8::INPUTS;
use super::simd::MOST_ROWS;

/// The instruction takes bytes, and an activation has 15 bits: it is 256 times a high byte and a
/// low byte, both signed, with sums of their own. 1024 products of bytes are far from the end of an
/// i32, and the whole sum, which an i32 holds, comes out whatever its parts do.
#[derive(Clone, Copy)]
pub(super) struct Dotprod;

/// Run a kernel, compiled for NEON with dot products.
#[target_feature(enable = "neon,dotprod")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the instructions are enabled here.
    kernel.run(unsafe { Neon::<Dotprod>::new() })
}

/// The same, never inlined.
#[inline(never)]
#[target_feature(enable = "neon,dotprod")]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: the instructions are enabled here.
    kernel.run(unsafe { Neon::<Dotprod>::new() })
}

/// The high bytes of eight activations, and their low bytes, both signed: a = 256 high + low.
///
/// # Safety
/// NEON is enabled.
#[inline(always)]
pub(super) unsafe fn split(a: int16x8_t) -> [int8x8_t; 2] {
    // SAFETY: the caller says so. Rounding gives the high byte what a negative low one takes away.
    unsafe { [vrshrn_n_s16::<8>(a), vmovn_s16(a)] }
}

/// Two lines of activations in place, each as four high bytes and four low ones.
///
/// # Safety
/// NEON is enabled.
#[inline(always)]
pub(super) unsafe fn split_lines(lines: &mut [[i16; INPUTS]; 2]) {
    // SAFETY: the caller says so, and two lines are a register.
    unsafe {
        let [high, low] = split(vld1q_s16(lines.as_ptr().cast()));
        let [high, low] = [vreinterpret_s32_s8(high), vreinterpret_s32_s8(low)];
        let bytes = vcombine_s32(vzip1_s32(high, low), vzip2_s32(high, low));
        vst1q_s16(lines.as_mut_ptr().cast(), vreinterpretq_s16_s32(bytes));
    }
}

/// The same for one line.
///
/// # Safety
/// NEON is enabled.
#[inline(always)]
pub(super) unsafe fn split_line(line: &mut [i16; INPUTS]) {
    let mut lines = [*line; 2];
    // SAFETY: the caller says so.
    unsafe { split_lines(&mut lines) };
    *line = lines[0];
}

/// Outputs 4 `i` to 4 `i` + 3 with their four inputs, from a line of weights, [2, 16, 2]. All
/// instruction sets have the same packing: four zips a line are what it costs here.
///
/// # Safety
/// `from` is valid for reading, and NEON is enabled.
#[inline(always)]
pub(super) unsafe fn quad(from: *const LineInt8, i: usize) -> int8x16_t {
    // SAFETY: the caller says so; a line is four registers, two of first pairs and two of second.
    unsafe {
        let from = from.cast::<i16>().add(i / 2 * 8);
        let [first, second] = [vld1q_s16(from), vld1q_s16(from.add(16))];
        let is_low = i.is_multiple_of(2);
        let quad = if is_low { vzip1q_s16(first, second) } else { vzip2q_s16(first, second) };
        vreinterpretq_s8_s16(quad)
    }
}

/// Lane by lane, sum + four weights times the four activations at `PART` of `x`. The intrinsic is
/// not stable.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot<const PART: usize>(mut sum: int32x4_t, weights: int8x16_t, x: int8x8_t) -> int32x4_t {
    // SAFETY: the instruction is enabled here, and touches its registers alone.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {weights:v}.16b, {x:v}.4b[{part}]",
            sum = inlateout(vreg) sum,
            weights = in(vreg) weights,
            x = in(vreg) x,
            part = const PART,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

impl Integers for Dotprod {
    /// Those of high bytes, and those of low ones.
    type Sums = [[int32x4_t; 4]; 2];

    // 32 registers: up to 24 sums of four lanes, the weights and an activation.
    const PANELS: [usize; MOST_ROWS] = [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    fn zero(_: Neon<Self>) -> Self::Sums {
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe { [[vdupq_n_s32(0); 4]; 2] }
    }

    #[inline(always)]
    fn total(_: Neon<Self>, [high, low]: Self::Sums) -> [int32x4_t; 4] {
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe {
            let shift = vshlq_n_s32::<8>;
            let high = each!(shift(high));
            each!(vaddq_s32(high, low))
        }
    }

    #[inline(always)]
    fn arrange(_: Neon<Self>, row: &mut [[i16; INPUTS]]) {
        let (twos, last) = row.as_chunks_mut();
        // SAFETY: there is a `Neon`, so NEON is enabled.
        unsafe {
            for lines in twos {
                split_lines(lines);
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
            // SAFETY: line < lines, p < P and r < R; there is a `Neon`, so the instructions are
            // enabled.
            unsafe {
                for p in 0..P {
                    let from = weights.add(p * apart + line);
                    let w = [quad(from, 0), quad(from, 1), quad(from, 2), quad(from, 3)];
                    for r in 0..R {
                        let x = vld1_s8(x.add(line * R + r).cast());
                        let [high, low] = &mut sums[r][p];
                        for i in 0..4 {
                            high[i] = sdot::<0>(high[i], w[i], x);
                            low[i] = sdot::<1>(low[i], w[i], x);
                        }
                    }
                }
            }
            line += 1;
        }
    }

    #[inline(always)]
    fn apart<K: Kernel>(_: Neon<Self>, kernel: K) -> K::Output {
        // SAFETY: there is a `Neon` with dot products, so the machine has them.
        unsafe { run_apart(kernel) }
    }
}

#[cfg(test)]
mod tests {
    use std::arch::aarch64::{vdupq_n_s16, vget_lane_s8};

    use super::split;

    #[test]
    fn every_activation_is_its_bytes() {
        for a in -16_383..=16_383 {
            // SAFETY: all processors that run tests have NEON.
            let [high, low] = unsafe { split(vdupq_n_s16(a)).map(|v| vget_lane_s8::<0>(v)) };
            assert_eq!(256 * i16::from(high) + i16::from(low), a);
        }
    }
}
