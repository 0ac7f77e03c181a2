//! Weight matrices, packed once for the product that is taken.

use std::fmt;

use super::isa::{self, Isa, Kernel, isa};
use super::lines::{LineF32, LineInt8};
use super::product_f32::ProductF32;
use super::product_int8::{INPUTS, ProductInt8};
use super::simd::LANES;

/// A weight matrix [outputs, inputs], packed once for the product that is taken.
///
/// Outputs are cut into panels of 16, the last padded with zeros, and within a panel the weights of
/// one input lie side by side. So the product reads memory from front to back, and needs no sum
/// across a vector.
///
/// A row's result does not depend on the rows that are computed with it, to the bit.
#[derive(Clone)]
pub struct Matrix {
    packed: Packed,
    outputs: usize,
    inputs: usize,
}

#[derive(Clone)]
enum Packed {
    /// [panels, inputs, 16].
    F32(Vec<LineF32>),
    /// Weights [panels, inputs / 4, 2, 16, 2]: pairs of inputs side by side; scales [panels * 16].
    Int8(Vec<LineInt8>, Vec<f32>),
}

/// Buffers that products reuse: after they have grown once, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    packed: Vec<f32>,
    quantized: Vec<[i16; INPUTS]>,
    packed_quantized: Vec<[i16; INPUTS]>,
    row_scales: Vec<f32>,
}

/// So many elements of a buffer, which grows if need be.
fn room<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) -> &mut [T] {
    if buffer.len() < length {
        buffer.resize(length, T::default());
    }
    &mut buffer[..length]
}

impl Matrix {
    /// Pack weights [outputs, inputs], row by row as in PyTorch's `Linear.weight`.
    pub fn from_f32(weights: &[f32], outputs: usize, inputs: usize) -> Self {
        assert_eq!(
            Some(weights.len()),
            outputs.checked_mul(inputs),
            "weights are [outputs, inputs]"
        );
        let mut lines = vec![LineF32([0.0; LANES]); outputs.div_ceil(LANES) * inputs];
        for (output, row) in weights.chunks_exact(inputs.max(1)).enumerate() {
            let panel = &mut lines[output / LANES * inputs..][..inputs];
            for (line, weight) in panel.iter_mut().zip(row) {
                line.0[output % LANES] = *weight;
            }
        }
        Self { packed: Packed::F32(lines), outputs, inputs }
    }

    /// Pack weights [outputs, inputs] with a scale for each output: the weight is `weights[o][i] *
    /// scales[o]`.
    pub fn from_int8(weights: &[i8], scales: &[f32], outputs: usize, inputs: usize) -> Self {
        assert_eq!(
            Some(weights.len()),
            outputs.checked_mul(inputs),
            "weights are [outputs, inputs]"
        );
        assert_eq!(scales.len(), outputs, "scales are [outputs]");
        let (panels, height) = (outputs.div_ceil(LANES), inputs.div_ceil(INPUTS));
        let mut lines = vec![LineInt8([[[0; 2]; LANES]; 2]); panels * height];
        for (output, row) in weights.chunks_exact(inputs.max(1)).enumerate() {
            let panel = &mut lines[output / LANES * height..][..height];
            for (input, weight) in row.iter().enumerate() {
                panel[input / INPUTS].0[input / 2 % 2][output % LANES][input % 2] = *weight;
            }
        }
        let mut padded = scales.to_vec();
        padded.resize(panels * LANES, 0.0);
        Self { packed: Packed::Int8(lines, padded), outputs, inputs }
    }

    /// Numbers that come out of the product.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Numbers that go into the product.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Bytes of packed weights.
    pub fn bytes(&self) -> usize {
        match &self.packed {
            Packed::F32(lines) => size_of_val(lines.as_slice()),
            Packed::Int8(lines, scales) => {
                size_of_val(lines.as_slice()) + size_of_val(scales.as_slice())
            }
        }
    }

    /// `y[r] = W x[r] + bias` for each of the rows; `x` is `[rows, inputs]`, `y` `[rows, outputs]`,
    /// and `bias` `[outputs]` or empty for none.
    pub fn apply(
        &self,
        x: &[f32],
        rows: usize,
        bias: &[f32],
        y: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.apply_with(isa(), x, rows, bias, y, scratch);
    }

    /// [`Matrix::apply`] with the given instructions, which must be available.
    pub fn apply_with(
        &self,
        isa: Isa,
        x: &[f32],
        rows: usize,
        bias: &[f32],
        y: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.apply_by(&mut On(isa), x, rows, bias, y, scratch);
    }

    fn apply_by(
        &self,
        run: &mut impl Runner,
        x: &[f32],
        rows: usize,
        bias: &[f32],
        y: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        assert_eq!(Some(x.len()), rows.checked_mul(inputs), "x is [rows, inputs]");
        assert_eq!(Some(y.len()), rows.checked_mul(outputs), "y is [rows, outputs]");
        assert!(bias.is_empty() || bias.len() == outputs, "bias is [outputs] or empty");
        match &self.packed {
            Packed::F32(weights) => {
                let packed = room(&mut scratch.packed, if rows > 1 { x.len() } else { 0 });
                run.run(ProductF32 { weights, x, packed, bias, y, rows, inputs, outputs });
            }
            Packed::Int8(weights, scales) => {
                let lines = rows * inputs.div_ceil(INPUTS);
                let quantized = room(&mut scratch.quantized, lines);
                let packed = room(&mut scratch.packed_quantized, if rows > 1 { lines } else { 0 });
                let row_scales = room(&mut scratch.row_scales, rows);
                run.run_integers(ProductInt8 {
                    weights,
                    scales,
                    x,
                    quantized,
                    packed,
                    row_scales,
                    bias,
                    y,
                    rows,
                    inputs,
                    outputs,
                });
            }
        }
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.packed {
            Packed::F32(_) => "f32",
            Packed::Int8(..) => "int8",
        };
        write!(f, "Matrix({} x {}, {kind})", self.outputs, self.inputs)
    }
}

/// What runs a kernel: an instruction set, or in tests also a shape of tiles that the machine does
/// not have.
trait Runner {
    fn run<K: Kernel<Output = ()>>(&mut self, kernel: K);

    /// A kernel that multiplies integers.
    fn run_integers<K: Kernel<Output = ()>>(&mut self, kernel: K) {
        self.run(kernel);
    }
}

struct On(Isa);

impl Runner for On {
    fn run<K: Kernel<Output = ()>>(&mut self, kernel: K) {
        isa::run(self.0, kernel);
    }

    fn run_integers<K: Kernel<Output = ()>>(&mut self, kernel: K) {
        isa::run_integers(self.0, kernel);
    }
}

/// The largest scale of a row of int8: with it, even -128 stands for a finite number.
pub const LARGEST_SCALE: f32 = f32::MAX / 128.0;

/// Quantise weights [outputs, inputs] to int8, symmetrically, with a scale for each output: the
/// greatest weight of a row becomes 127.
///
/// A row of zeros has the scale 0, and a row that is not finite the scale NaN, so that its outputs
/// show it.
pub fn quantize_rows(weights: &[f32], outputs: usize, inputs: usize) -> (Vec<i8>, Vec<f32>) {
    assert_eq!(Some(weights.len()), outputs.checked_mul(inputs), "weights are [outputs, inputs]");
    let mut quantized = vec![0; weights.len()];
    let mut scales = vec![0.0; outputs];
    if inputs == 0 {
        return (quantized, scales);
    }
    let rows = weights.chunks_exact(inputs).zip(quantized.chunks_exact_mut(inputs));
    for ((row, quantized), scale) in rows.zip(&mut scales) {
        if row.iter().any(|w| !w.is_finite()) {
            *scale = f32::NAN;
            continue;
        }
        *scale = row.iter().fold(0.0, |most: f32, w| most.max(w.abs())) / 127.0;
        if *scale > 0.0 {
            for (q, w) in quantized.iter_mut().zip(row) {
                *q = (w / *scale).round_ties_even().clamp(-127.0, 127.0) as i8;
            }
        }
    }
    (quantized, scales)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::portable::Portable;
    use super::*;

    /// Tiles of the shape of AVX-512, which run anywhere.
    struct Wide;

    impl Runner for Wide {
        fn run<K: Kernel<Output = ()>>(&mut self, kernel: K) {
            kernel.run(Portable::<true>);
        }
    }

    /// The product by each instruction set there is, and by the shape of AVX-512.
    fn products(matrix: &Matrix, x: &[f32], rows: usize, bias: &[f32]) -> Vec<(String, Vec<f32>)> {
        let mut scratch = Scratch::default();
        let mut all = Vec::new();
        for isa in Isa::available() {
            let mut y = vec![f32::NAN; rows * matrix.outputs()];
            matrix.apply_with(isa, x, rows, bias, &mut y, &mut scratch);
            all.push((isa.to_string(), y));
        }
        let mut y = vec![f32::NAN; rows * matrix.outputs()];
        matrix.apply_by(&mut Wide, x, rows, bias, &mut y, &mut scratch);
        all.push(("wide".into(), y));
        all
    }

    /// Numbers in -1..1 from a seed.
    fn numbers(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|v| v.to_bits()).collect()
    }

    /// The product in f64, and for each output the sum of magnitudes, by which an error is judged.
    fn plain(
        w: &[f32],
        x: &[f32],
        rows: usize,
        bias: &[f32],
        outputs: usize,
        inputs: usize,
    ) -> Vec<(f64, f64)> {
        let mut y = Vec::new();
        for row in 0..rows {
            for output in 0..outputs {
                let mut sum = bias.get(output).copied().map_or(0.0, f64::from);
                let mut size = sum.abs();
                for input in 0..inputs {
                    let term =
                        f64::from(w[output * inputs + input]) * f64::from(x[row * inputs + input]);
                    sum += term;
                    size += term.abs();
                }
                y.push((sum, size));
            }
        }
        y
    }

    fn check_f32(outputs: usize, inputs: usize, rows: usize, with_bias: bool, seed: u32) {
        let w = numbers(outputs * inputs, seed);
        let x = numbers(rows * inputs, seed + 1);
        let bias = if with_bias { numbers(outputs, seed + 2) } else { Vec::new() };
        let matrix = Matrix::from_f32(&w, outputs, inputs);
        let expected = plain(&w, &x, rows, &bias, outputs, inputs);
        for (name, y) in products(&matrix, &x, rows, &bias) {
            for (y, (expected, size)) in y.iter().zip(&expected) {
                let error = (f64::from(*y) - expected).abs();
                assert!(
                    error <= 1e-5 * size,
                    "{name}: {y}, not {expected}, {outputs} x {inputs}, {rows} rows"
                );
            }
        }
    }

    fn check_int8(outputs: usize, inputs: usize, rows: usize, with_bias: bool, seed: u32) {
        let w = numbers(outputs * inputs, seed);
        let x = numbers(rows * inputs, seed + 1);
        let bias = if with_bias { numbers(outputs, seed + 2) } else { Vec::new() };
        let (quantized, scales) = quantize_rows(&w, outputs, inputs);
        let matrix = Matrix::from_int8(&quantized, &scales, outputs, inputs);
        let restored: Vec<f32> =
            (0..w.len()).map(|i| f32::from(quantized[i]) * scales[i / inputs]).collect();
        let expected = plain(&restored, &x, rows, &bias, outputs, inputs);
        let all = products(&matrix, &x, rows, &bias);
        for (name, y) in &all {
            for (y, (expected, _)) in y.iter().zip(&expected) {
                // Each activation is off by at most half a step of 1 / 16383, and weights are at
                // most 1.
                let error = (f64::from(*y) - expected).abs();
                let bound = inputs as f64 * 0.51 / 16383.0 + 1e-5;
                assert!(
                    error <= bound,
                    "{name}: {y}, not {expected}, {outputs} x {inputs}, {rows} rows"
                );
            }
            assert_eq!(bits(y), bits(&all[0].1), "{name} and {}", all[0].0);
        }
    }

    const SHAPES: [(usize, usize); 10] = [
        (1, 1),
        (15, 3),
        (16, 1),
        (17, 5),
        (31, 4),
        (33, 2),
        (129, 7),
        (160, 9),
        (5, 1023),
        (20, 2050),
    ];

    #[test]
    fn products_of_odd_shapes() {
        for (outputs, inputs) in SHAPES {
            for rows in (0..=14).chain([25, 37]) {
                check_f32(outputs, inputs, rows, rows % 2 == 0, 3);
                check_int8(outputs, inputs, rows, rows % 2 == 0, 3);
            }
        }
    }

    #[test]
    fn empty_products() {
        check_f32(0, 3, 2, false, 1);
        check_f32(3, 0, 2, true, 1);
        let matrix = Matrix::from_int8(&[], &[0.5; 3], 3, 0);
        for (_, y) in products(&matrix, &[], 2, &[1.0, 2.0, 3.0]) {
            assert_eq!(y, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        }
        assert_eq!(quantize_rows(&[], 3, 0), (vec![], vec![0.0; 3]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn products_are_right(
            outputs in 1_usize..200, inputs in 1_usize..300, rows in 0_usize..16, bias: bool, seed in 0_u32..1000,
        ) {
            check_f32(outputs, inputs, rows, bias, seed);
            check_int8(outputs, inputs, rows, bias, seed);
        }

        #[test]
        fn a_row_does_not_depend_on_its_neighbours(
            outputs in 1_usize..150, inputs in 1_usize..100, rows in 1_usize..30, seed in 0_u32..1000,
        ) {
            let w = numbers(outputs * inputs, seed);
            let (quantized, scales) = quantize_rows(&w, outputs, inputs);
            let x = numbers(rows * inputs, seed + 1);
            let bias = numbers(outputs, seed + 2);
            let f32 = Matrix::from_f32(&w, outputs, inputs);
            for matrix in [f32, Matrix::from_int8(&quantized, &scales, outputs, inputs)] {
                let together = products(&matrix, &x, rows, &bias);
                for row in 0..rows {
                    let alone = products(&matrix, &x[row * inputs..][..inputs], 1, &bias);
                    for ((name, alone), (_, together)) in alone.iter().zip(&together) {
                        prop_assert_eq!(bits(alone), bits(&together[row * outputs..][..outputs]), "{}", name);
                    }
                }
            }
        }
    }

    #[test]
    fn int8_sums_do_not_overflow() {
        for inputs in [1024, 1028, 5000] {
            let matrix = Matrix::from_int8(&vec![-128; 17 * inputs], &[1.0; 17], 17, inputs);
            for (name, y) in products(&matrix, &vec![-3.0; inputs], 1, &[]) {
                let expected = 384.0 * inputs as f32;
                assert!(y.iter().all(|y| (y - expected).abs() <= 1e-6 * expected), "{name}: {y:?}");
            }
        }
    }

    #[test]
    fn activations_out_of_range() {
        let matrix = Matrix::from_int8(&[1, 2, 3, 4, 5, 6], &[1.0, 0.5], 2, 3);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let x = [1.0, bad, 0.0, 1.0, 1.0, 1.0];
            for (name, y) in products(&matrix, &x, 2, &[0.0, 0.0]) {
                assert!(y[0].is_nan() && y[1].is_nan(), "{name}: {y:?}");
                assert!((y[2] - 6.0).abs() < 1e-3 && (y[3] - 7.5).abs() < 1e-3, "{name}: {y:?}");
            }
        }
        // The bits that NaN carries are no activations: their sums would be more than an i32 holds.
        let carries = [f32::from_bits(0x7fc0_8000); 1024];
        for (name, y) in
            products(&Matrix::from_int8(&[-128; 1024], &[1.0], 1, 1024), &carries, 1, &[])
        {
            assert!(y[0].is_nan(), "{name}: {y:?}");
        }
        for tiny in [0.0, -0.0, 1e-45, 1e-38, 1e-31] {
            for (name, y) in products(&matrix, &[tiny; 3], 1, &[1.0, 2.0]) {
                assert_eq!(y, [1.0, 2.0], "{name}");
            }
        }
        let huge = f32::MAX / 8.0;
        for (name, y) in products(&matrix, &[huge, 0.0, 0.0], 1, &[]) {
            assert!((y[0] / huge - 1.0).abs() < 1e-5, "{name}: {y:?}");
        }
    }

    /// What one machine computes is compared with its own portable kernels; this number is the same
    /// on all of them: x86, ARM and WebAssembly.
    #[test]
    fn bits_are_the_same_on_all_machines() {
        let (outputs, inputs, rows) = (33, 2050, 5);
        let (quantized, scales) = quantize_rows(&numbers(outputs * inputs, 1), outputs, inputs);
        let matrix = Matrix::from_int8(&quantized, &scales, outputs, inputs);
        for (name, y) in products(&matrix, &numbers(rows * inputs, 2), rows, &numbers(outputs, 3)) {
            let digest = bits(&y).into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, bits| {
                (hash ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3)
            });
            assert_eq!(digest, 11_756_076_699_720_733_172, "{name}");
        }
    }

    #[test]
    fn weights_round_trip() {
        let w = [0.0, 0.0, -2.0, 1.0, 1e-45, 0.0, f32::NAN, 1.0, f32::MAX, -f32::MAX];
        let (quantized, scales) = quantize_rows(&w, 5, 2);
        assert_eq!(quantized, [0, 0, -127, 64, 0, 0, 0, 0, 127, -127]);
        assert_eq!(scales[0].to_bits(), 0);
        assert!(scales[3].is_nan() && scales[4].is_finite());
    }

    #[test]
    fn scratch_does_not_grow_again() {
        let mut scratch = Scratch::default();
        let matrix = Matrix::from_int8(&[1; 12], &[1.0; 3], 3, 4);
        matrix.apply(&[1.0; 20], 5, &[], &mut [0.0; 15], &mut scratch);
        let before = scratch.quantized.as_ptr();
        matrix.apply(&[1.0; 8], 2, &[], &mut [0.0; 6], &mut scratch);
        matrix.apply(&[1.0; 20], 5, &[], &mut [0.0; 15], &mut scratch);
        assert_eq!(scratch.quantized.as_ptr(), before);
    }

    #[test]
    #[should_panic(expected = "x is [rows, inputs]")]
    fn a_wrong_length_panics() {
        Matrix::from_f32(&[1.0; 6], 2, 3).apply(
            &[1.0; 5],
            2,
            &[],
            &mut [0.0; 4],
            &mut Scratch::default(),
        );
    }
}
