//! exp, tanh, sigmoid and GELU of a vector, within a few units in the last place.

use super::simd::Simd;

/// Adding and subtracting it rounds a small number to the nearest whole one.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has so few bits that whole multiples of it are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, highest power first: the classic minimax polynomial
/// of Cephes.
const POLYNOMIAL: [f32; 6] =
    [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// x = n ln 2 + r with whole n and small r; returns n and exp(r) - 1, which keeps its precision
/// near zero.
#[inline(always)]
fn reduce<S: Simd>(s: S, x: S::F32) -> (S::F32, S::F32) {
    let round = s.splat(ROUND);
    let n = s.sub(s.fma(x, s.splat(std::f32::consts::LOG2_E), round), round);
    let minus_n = s.sub(s.splat(0.0), n);
    let r = s.fma(minus_n, s.splat(LN2_LOW), s.fma(minus_n, s.splat(LN2_HIGH), x));
    let mut p = s.splat(POLYNOMIAL[0]);
    let mut i = 1;
    while i < POLYNOMIAL.len() {
        p = s.fma(p, r, s.splat(POLYNOMIAL[i]));
        i += 1;
    }
    (n, s.fma(s.mul(r, r), p, r))
}

/// e^x: infinity above the range, zero below it, NaN for NaN.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    // Just outside of what f32 can hold. The constant comes first, so that NaN stays.
    let x = s.max(s.splat(-104.0), s.min(s.splat(89.0), x));
    let (n, p) = reduce(s, x);
    // 2^n in two factors, as n itself may be outside of the exponents of f32.
    let round = s.splat(ROUND);
    let half = s.sub(s.fma(n, s.splat(0.5), round), round);
    let e = s.add(p, s.splat(1.0));
    s.mul(s.mul(e, s.pow2(half)), s.pow2(s.sub(n, half)))
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(super) fn sigmoid<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}

/// tanh x, as -m / (m + 2) with m = e^(-2|x|) - 1, and the sign of x.
#[inline(always)]
pub(super) fn tanh<S: Simd>(s: S, x: S::F32) -> S::F32 {
    // From 9.02 on tanh rounds to one.
    let a = s.min(s.splat(10.0), s.abs(x));
    let (n, p) = reduce(s, s.mul(a, s.splat(-2.0)));
    let scale = s.pow2(n);
    let m = s.fma(scale, p, s.sub(scale, s.splat(1.0)));
    // 0 - m rather than -m: zero must come out without a sign.
    s.with_sign(s.div(s.sub(s.splat(0.0), m), s.add(m, s.splat(2.0))), x)
}

/// Φ(-a) e^(a²/2) / t for t = 1 / (1 + 0.3 a) and a of 0 to 15, highest power first: a minimax
/// polynomial, relatively right to 2e-7. Φ is the normal distribution.
const TAIL: [f32; 9] = [
    2.650_843_7e-3,
    2.373_803e-2,
    -1.344_323e-1,
    1.823_562_7e-1,
    -3.842_167_6e-2,
    1.225_687_6e-1,
    1.013_314_4e-1,
    1.205_692_4e-1,
    1.196_394_3e-1,
];

/// x Φ(x).
#[inline(always)]
pub(super) fn gelu<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let (one, a) = (s.splat(1.0), distance(s, x));
    let t = s.div(one, s.fma(s.splat(0.3), a, one));
    let mut p = s.splat(TAIL[0]);
    let mut i = 1;
    while i < TAIL.len() {
        p = s.fma(p, t, s.splat(TAIL[i]));
        i += 1;
    }
    let tail = s.mul(exp(s, s.mul(s.mul(a, a), s.splat(-0.5))), s.mul(p, t));
    gated(s, x, a, tail)
}

/// The same with Φ(x) taken for (1 + tanh u) / 2, u = √(2/π) (x + 0.044715 x³), which is the
/// sigmoid of 2u.
#[inline(always)]
pub(super) fn gelu_tanh<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let a = distance(s, x);
    let cube = s.mul(s.mul(a, a), s.mul(a, s.splat(0.044_715)));
    gated(s, x, a, sigmoid(s, s.mul(s.add(a, cube), s.splat(-1.595_769))))
}

/// |x|, but no more than 15: from there on the tail is zero in f32, and its product with infinity
/// would be none.
#[inline(always)]
fn distance<S: Simd>(s: S, x: S::F32) -> S::F32 {
    s.min(s.splat(15.0), s.abs(x))
}

/// x Φ(x) from the tail Φ(-a) for a = |x|: Φ(x) is 1 - Φ(-x), so that it is max(0, x) - a Φ(-a) on
/// both sides of zero.
///
/// The tail is a value and no closure: a closure is compiled without the instructions of the
/// function that calls it.
#[inline(always)]
fn gated<S: Simd>(s: S, x: S::F32, a: S::F32, tail: S::F32) -> S::F32 {
    s.sub(s.max(s.splat(0.0), x), s.mul(a, tail))
}
