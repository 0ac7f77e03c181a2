//! Functions of vectors: activations, gates, softmax and the products attention takes.
//!
//! What is left over at the end of a slice goes through the same code in a padded vector, so that a
//! number's result does not depend on where it stands.

use super::isa::{self, Isa, Kernel, isa};
use super::math;
use super::simd::{LANES, Simd};

/// A vector from the up to 16 numbers there are, and `pad`.
#[inline(always)]
pub(super) fn read_padded<S: Simd>(s: S, from: &[f32], pad: f32) -> S::F32 {
    let mut whole = [pad; LANES];
    whole[..from.len()].copy_from_slice(from);
    s.read(&whole)
}

/// Write as many lanes as there is room for.
#[inline(always)]
pub(super) fn write_part<S: Simd>(s: S, v: S::F32, to: &mut [f32]) {
    let mut whole = [0.0; LANES];
    s.store(v, &mut whole);
    to.copy_from_slice(&whole[..to.len()]);
}

/// A function of single numbers.
trait Map: Copy {
    fn map<S: Simd>(self, s: S, v: S::F32) -> S::F32;
}

struct InPlace<'a, M>(&'a mut [f32], M);

impl<M: Map> Kernel for InPlace<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (whole, rest) = self.0.as_chunks_mut::<LANES>();
        for x in whole {
            s.store(self.1.map(s, s.read(x)), x);
        }
        if !rest.is_empty() {
            write_part(s, self.1.map(s, read_padded(s, rest, 0.0)), rest);
        }
    }
}

macro_rules! in_place {
    ($($(#[$doc:meta])* $visible:vis $name:ident, $with:ident, $map:ident = |$s:ident, $v:ident| $value:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $map;

        impl Map for $map {
            #[inline(always)]
            fn map<S: Simd>(self, $s: S, $v: S::F32) -> S::F32 {
                $value
            }
        }

        $(#[$doc])*
        $visible fn $name(x: &mut [f32]) {
            $with(isa(), x);
        }

        #[doc = concat!("[`", stringify!($name), "`] with the given instructions, which must be available.")]
        fn $with(isa: Isa, x: &mut [f32]) {
            isa::run(isa, InPlace(x, $map));
        }
    )*};
}

in_place! {
    /// 1 / (1 + e^-x) in place.
    pub sigmoid, sigmoid_with, Sigmoid = |s, v| math::sigmoid(s, v);
    /// tanh x in place.
    pub tanh, tanh_with, Tanh = |s, v| math::tanh(s, v);
    /// max(0, x) in place; NaN stays.
    pub(crate) relu, relu_with, Relu = |s, v| s.max(s.splat(0.0), v);
    /// x Φ(x) in place, Φ being the normal distribution.
    pub gelu, gelu_with, Gelu = |s, v| math::gelu(s, v);
    /// The same with Φ approximated by a hyperbolic tangent.
    pub gelu_tanh, gelu_tanh_with, GeluTanh = |s, v| math::gelu_tanh(s, v);
}

struct Gates<'a> {
    /// i, f, g, o.
    before: [&'a [f32]; 4],
    c: &'a mut [f32],
    h: &'a mut [f32],
}

/// The new c and h from the gates i, f, g, o and the old c.
#[inline(always)]
fn cell<S: Simd>(s: S, [i, f, g, o]: [S::F32; 4], c: S::F32) -> (S::F32, S::F32) {
    let new = s.mul(math::sigmoid(s, i), math::tanh(s, g));
    let c = s.fma(math::sigmoid(s, f), c, new);
    (c, s.mul(math::sigmoid(s, o), math::tanh(s, c)))
}

impl Kernel for Gates<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let [(i, i_rest), (f, f_rest), (g, g_rest), (o, o_rest)] =
            self.before.map(|gate| gate.as_chunks::<LANES>());
        let (c, c_rest) = self.c.as_chunks_mut::<LANES>();
        let (h, h_rest) = self.h.as_chunks_mut::<LANES>();
        for (((((c, h), i), f), g), o) in c.iter_mut().zip(h).zip(i).zip(f).zip(g).zip(o) {
            let new = cell(s, [s.read(i), s.read(f), s.read(g), s.read(o)], s.read(c));
            s.store(new.0, c);
            s.store(new.1, h);
        }
        if !c_rest.is_empty() {
            let i = read_padded(s, i_rest, 0.0);
            let f = read_padded(s, f_rest, 0.0);
            let g = read_padded(s, g_rest, 0.0);
            let o = read_padded(s, o_rest, 0.0);
            let new = cell(s, [i, f, g, o], read_padded(s, c_rest, 0.0));
            write_part(s, new.0, c_rest);
            write_part(s, new.1, h_rest);
        }
    }
}

/// The gates of an LSTM, fused. `gates` is [4, n], before activation, in the order i, f, g, o:
/// c' = sigmoid(f) c + sigmoid(i) tanh(g) and h = sigmoid(o) tanh(c'), each `[n]`.
pub(crate) fn gates(gates: &[f32], c_in: &[f32], c_out: &mut [f32], h: &mut [f32]) {
    assert_eq!(c_in.len(), c_out.len(), "c is [n]");
    c_out.copy_from_slice(c_in);
    gates_in_place(gates, c_out, h);
}

/// [`gates`] that replaces c.
fn gates_in_place(gates: &[f32], c: &mut [f32], h: &mut [f32]) {
    gates_in_place_with(isa(), gates, c, h);
}

/// [`gates_in_place`] with the given instructions, which must be available.
fn gates_in_place_with(isa: Isa, gates: &[f32], c: &mut [f32], h: &mut [f32]) {
    let n = c.len();
    assert_eq!(Some(gates.len()), n.checked_mul(4), "gates are [4, n]");
    assert_eq!(h.len(), n, "h is [n]");
    let before = [&gates[..n], &gates[n..2 * n], &gates[2 * n..3 * n], &gates[3 * n..]];
    isa::run(isa, Gates { before, c, h });
}

pub(super) struct Softmax<'a>(pub(super) &'a mut [f32]);

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (whole, rest) = self.0.as_chunks_mut::<LANES>();
        let mut most = read_padded(s, rest, f32::NEG_INFINITY);
        for x in &*whole {
            most = s.max(most, s.read(x));
        }
        let mut lanes = [0.0; LANES];
        s.store(most, &mut lanes);
        let most = s.splat(lanes.iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x)));

        // The padding is minus infinity, of which exp is zero: it adds nothing.
        let last = math::exp(s, s.sub(read_padded(s, rest, f32::NEG_INFINITY), most));
        let mut sum = last;
        for x in &mut *whole {
            let e = math::exp(s, s.sub(s.read(x), most));
            sum = s.add(sum, e);
            s.store(e, x);
        }
        let scale = s.splat(1.0 / s.sum(sum));
        for x in whole {
            s.store(s.mul(s.read(x), scale), x);
        }
        write_part(s, s.mul(last, scale), rest);
    }
}

/// Softmax in place, safe from overflow. Nothing happens to an empty slice; NaN, plus infinity, or
/// nothing but minus infinity gives NaN.
pub fn softmax(x: &mut [f32]) {
    softmax_with(isa(), x);
}

/// [`softmax`] with the given instructions, which must be available.
fn softmax_with(isa: Isa, x: &mut [f32]) {
    if !x.is_empty() {
        isa::run(isa, Softmax(x));
    }
}

pub(super) struct Dot<'a>(pub(super) &'a [f32], pub(super) &'a [f32]);

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let (a, a_rest) = self.0.as_chunks::<LANES>();
        let (b, b_rest) = self.1.as_chunks::<LANES>();
        let mut even = s.mul(read_padded(s, a_rest, 0.0), read_padded(s, b_rest, 0.0));
        let mut odd = s.splat(0.0);
        let (a2, a1) = a.as_chunks::<2>();
        let (b2, b1) = b.as_chunks::<2>();
        for (a, b) in a2.iter().zip(b2) {
            even = s.fma(s.read(&a[0]), s.read(&b[0]), even);
            odd = s.fma(s.read(&a[1]), s.read(&b[1]), odd);
        }
        for (a, b) in a1.iter().zip(b1) {
            even = s.fma(s.read(a), s.read(b), even);
        }
        s.sum(s.add(even, odd))
    }
}

/// The sum of `a[i] b[i]`.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_with(isa(), a, b)
}

/// [`dot`] with the given instructions, which must be available.
fn dot_with(isa: Isa, a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "dot of vectors of different lengths");
    isa::run(isa, Dot(a, b))
}

pub(super) struct Axpy<'a>(pub(super) f32, pub(super) &'a [f32], pub(super) &'a mut [f32]);

impl Kernel for Axpy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let alpha = s.splat(self.0);
        let (x, x_rest) = self.1.as_chunks::<LANES>();
        let (y, y_rest) = self.2.as_chunks_mut::<LANES>();
        for (y, x) in y.iter_mut().zip(x) {
            s.store(s.fma(alpha, s.read(x), s.read(y)), y);
        }
        if !y_rest.is_empty() {
            let sum = s.fma(alpha, read_padded(s, x_rest, 0.0), read_padded(s, y_rest, 0.0));
            write_part(s, sum, y_rest);
        }
    }
}

/// y += alpha x.
pub fn axpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    axpy_with(isa(), alpha, x, y);
}

/// [`axpy`] with the given instructions, which must be available.
fn axpy_with(isa: Isa, alpha: f32, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "axpy of vectors of different lengths");
    isa::run(isa, Axpy(alpha, x, y));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// e^x, which no model needs by itself: infinity above the range of f32, zero below.
    #[derive(Clone, Copy)]
    struct Exp;

    impl Map for Exp {
        #[inline(always)]
        fn map<S: Simd>(self, s: S, v: S::F32) -> S::F32 {
            math::exp(s, v)
        }
    }

    fn exp_with(isa: Isa, x: &mut [f32]) {
        isa::run(isa, InPlace(x, Exp));
    }

    /// Numbers that cover a range densely, of both signs and all sizes.
    fn inputs(most: f32) -> Vec<f32> {
        let mut all: Vec<f32> = (-20_000..=20_000).map(|i| i as f32 / 20_000.0 * most).collect();
        let mut small = 1.0_f32;
        while small > 1e-40 {
            all.extend([small, -small]);
            small *= 0.93;
        }
        all.extend([0.0, -0.0]);
        all
    }

    /// Compare with f64, relatively, wherever the right result is at least `least`.
    fn check(function: fn(Isa, &mut [f32]), right: fn(f64) -> f64, most: f32, least: f64) {
        let x = inputs(most);
        for isa in Isa::available() {
            let mut y = x.clone();
            function(isa, &mut y);
            for (x, y) in x.iter().zip(y) {
                let right = right(f64::from(*x));
                let error = (f64::from(y) - right).abs();
                assert!(
                    right.abs() < least || error <= 1e-6 * right.abs(),
                    "{isa}: f({x}) = {y}, not {right}"
                );
                assert!(right.abs() >= least || error <= least, "{isa}: f({x}) = {y}, not {right}");
            }
        }
    }

    #[test]
    fn exp_is_accurate() {
        check(exp_with, f64::exp, 88.72, 1.2e-38);
    }

    #[test]
    fn sigmoid_is_accurate() {
        check(sigmoid_with, |x| 1.0 / (1.0 + (-x).exp()), 100.0, 1e-37);
    }

    #[test]
    fn tanh_is_accurate() {
        check(tanh_with, f64::tanh, 1.0, 1e-37);
        check(tanh_with, f64::tanh, 20.0, 1e-37);
    }

    /// Φ(x) by the series of its density, in which nothing cancels.
    fn normal(x: f64) -> f64 {
        let (mut term, mut sum) = (x.abs(), 0.0);
        for i in 0..400 {
            sum += term;
            term *= x * x / f64::from(2 * i + 3);
        }
        let half = sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if x < 0.0 { 0.5 - half } else { 0.5 + half }
    }

    /// Compare with f64. Of a negative number hardly anything may be left, which need not be so
    /// right.
    fn check_gelu(function: fn(Isa, &mut [f32]), right: fn(f64) -> f64) {
        let x: Vec<f32> = [1e-3, 1.0, 4.0, 12.0].into_iter().flat_map(inputs).collect();
        for isa in Isa::available() {
            let mut y = x.clone();
            function(isa, &mut y);
            for (x, y) in x.iter().zip(y) {
                let right = right(f64::from(*x));
                let error = (f64::from(y) - right).abs();
                assert!(error <= 1e-6 * right.abs() + 1e-9, "{isa}: f({x}) = {y}, not {right}");
            }
        }
    }

    #[test]
    fn gelu_is_accurate() {
        check_gelu(gelu_with, |x| x * normal(x));
        check_gelu(gelu_tanh_with, |x| {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            x / (1.0 + (-2.0 * u).exp())
        });
    }

    /// Apply to numbers at the edge and compare with what is expected, where NaN equals NaN.
    fn check_edge(function: fn(Isa, &mut [f32]), cases: &[(f32, f32)]) {
        for isa in Isa::available() {
            for (x, expected) in cases {
                let mut y = [*x];
                function(isa, &mut y);
                let same =
                    y[0].to_bits() == expected.to_bits() || y[0].is_nan() && expected.is_nan();
                assert!(same, "{isa}: f({x}) = {}, not {expected}", y[0]);
            }
        }
    }

    #[test]
    fn edges() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        check_edge(
            exp_with,
            &[(0.0, 1.0), (88.73, inf), (inf, inf), (-104.0, 0.0), (-inf, 0.0), (nan, nan)],
        );
        check_edge(sigmoid_with, &[(0.0, 0.5), (40.0, 1.0), (inf, 1.0), (-inf, 0.0), (nan, nan)]);
        check_edge(
            tanh_with,
            &[(0.0, 0.0), (-0.0, -0.0), (30.0, 1.0), (inf, 1.0), (-inf, -1.0), (nan, nan)],
        );
        check_edge(
            relu_with,
            &[(0.0, 0.0), (-1.5, 0.0), (2.5, 2.5), (-inf, 0.0), (inf, inf), (nan, nan)],
        );
        for gelu in [gelu_with, gelu_tanh_with] {
            check_edge(
                gelu,
                &[(0.0, 0.0), (-0.0, -0.0), (20.0, 20.0), (-20.0, 0.0), (f32::MAX, f32::MAX)],
            );
            check_edge(gelu, &[(inf, inf), (-inf, 0.0), (f32::MIN, 0.0), (nan, nan)]);
        }
    }

    fn numbers() -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-8.0_f32..8.0, 0..70)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_place_does_not_matter(x in numbers()) {
            for isa in Isa::available() {
                for function in [exp_with, sigmoid_with, tanh_with, relu_with, gelu_with, gelu_tanh_with] {
                    let mut together = x.clone();
                    function(isa, &mut together);
                    for (x, y) in x.iter().zip(together) {
                        let mut alone = [*x];
                        function(isa, &mut alone);
                        prop_assert_eq!(alone[0].to_bits(), y.to_bits(), "{}", isa);
                    }
                }
            }
        }

        #[test]
        fn gates_are_right(x in numbers()) {
            let n = x.len() / 5;
            let (pre, c) = x[..n * 5].split_at(n * 4);
            for isa in Isa::available() {
                let (mut new, mut h) = (c.to_vec(), vec![f32::NAN; n]);
                gates_in_place_with(isa, pre, &mut new, &mut h);
                let sigmoid = |x: f32| 1.0 / (1.0 + (-f64::from(x)).exp());
                for j in 0..n {
                    let (i, f, g, o) = (pre[j], pre[n + j], pre[2 * n + j], pre[3 * n + j]);
                    let right = sigmoid(f) * f64::from(c[j]) + sigmoid(i) * f64::from(g).tanh();
                    prop_assert!((f64::from(new[j]) - right).abs() < 4e-6, "{}: {} not {}", isa, new[j], right);
                    let right = sigmoid(o) * right.tanh();
                    prop_assert!((f64::from(h[j]) - right).abs() < 4e-6, "{}: {} not {}", isa, h[j], right);
                }
            }
            let (mut new, mut h) = (c.to_vec(), vec![0.0; n]);
            gates_in_place(pre, &mut new, &mut h);
            let (mut other, mut other_h) = (vec![0.0; n], vec![0.0; n]);
            gates(pre, c, &mut other, &mut other_h);
            prop_assert_eq!((new, h), (other, other_h));
        }

        #[test]
        fn softmax_is_right(x in numbers(), shift in -1e4_f32..1e4) {
            let x: Vec<f32> = x.iter().map(|x| x + shift).collect();
            let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f64> = x.iter().map(|x| f64::from(x - most).exp()).collect();
            let sum: f64 = e.iter().sum();
            for isa in Isa::available() {
                let mut y = x.clone();
                softmax_with(isa, &mut y);
                for (y, e) in y.iter().zip(&e) {
                    prop_assert!((f64::from(*y) - e / sum).abs() <= 1e-6 * e / sum, "{}: {} not {}", isa, y, e / sum);
                }
            }
        }

        #[test]
        fn dot_and_axpy_are_right(x in numbers(), alpha in -2.0_f32..2.0) {
            let y: Vec<f32> = x.iter().rev().copied().collect();
            let size: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(*x * *y).abs()).sum();
            let right: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            for isa in Isa::available() {
                let got = f64::from(dot_with(isa, &x, &y));
                prop_assert!((got - right).abs() <= 1e-6 * size, "{}: {} not {}", isa, got, right);
                let mut sum = y.clone();
                axpy_with(isa, alpha, &x, &mut sum);
                for ((x, y), sum) in x.iter().zip(&y).zip(&sum) {
                    prop_assert!((alpha * x + y - sum).abs() < 1e-5, "{}", isa);
                }
            }
        }
    }

    #[test]
    fn softmax_of_masked_and_empty() {
        for isa in Isa::available() {
            softmax_with(isa, &mut []);
            let mut x = vec![f32::NEG_INFINITY; 40];
            x[17] = 3.0;
            softmax_with(isa, &mut x);
            let mut expected = vec![0.0; 40];
            expected[17] = 1.0;
            assert_eq!(x, expected, "{isa}");
            let mut x = [1.0, f32::NAN, 2.0];
            softmax_with(isa, &mut x);
            assert!(x.iter().all(|x| x.is_nan()), "{isa}: {x:?}");
        }
    }

    #[test]
    #[should_panic(expected = "gates are [4, n]")]
    fn a_wrong_length_panics() {
        gates(&[0.0; 7], &[0.0; 2], &mut [0.0; 2], &mut [0.0; 2]);
    }
}
