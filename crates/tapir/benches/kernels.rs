//! Products against a plain read of as many bytes, in the same run.

mod yardstick;

use std::hint::black_box;

use tapir::kernels::{Isa, Matrix, Scratch, isa, quantize_rows};
use yardstick::{fastest, race};

/// Numbers in -1..1 that are the same in each run.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 1_u32;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

/// A stack of matrices in f32 and int8.
struct Stack {
    f32: Vec<Matrix>,
    int8: Vec<Matrix>,
}

impl Stack {
    fn new(shapes: &[(usize, usize)]) -> Self {
        let mut stack = Self { f32: Vec::new(), int8: Vec::new() };
        for &(outputs, inputs) in shapes {
            let weights = numbers(outputs * inputs);
            let (quantized, scales) = quantize_rows(&weights, outputs, inputs);
            stack.f32.push(Matrix::from_f32(&weights, outputs, inputs));
            stack.int8.push(Matrix::from_int8(&quantized, &scales, outputs, inputs));
        }
        stack
    }
}

fn bytes(matrices: &[Matrix]) -> usize {
    matrices.iter().map(Matrix::bytes).sum()
}

/// Apply every matrix to that many rows.
fn apply(matrices: &[Matrix], rows: usize, x: &[f32], y: &mut [f32], scratch: &mut Scratch) {
    apply_with(isa(), matrices, rows, x, y, scratch);
}

/// The same with the given instructions.
fn apply_with(
    isa: Isa,
    matrices: &[Matrix],
    rows: usize,
    x: &[f32],
    y: &mut [f32],
    scratch: &mut Scratch,
) {
    for matrix in matrices {
        let x = &x[..rows * matrix.inputs()];
        matrix.apply_with(isa, black_box(x), rows, &[], &mut y[..rows * matrix.outputs()], scratch);
    }
    black_box(y);
}

/// Every set of kernels that the machine has against the portable ones, and against as many
/// multiplications and additions as its instructions can do in registers, in the same run.
fn compare_kernels(outputs: usize, inputs: usize) {
    println!(
        "\n{:<10} {:>4} {:>16} {:>16} {:>12} {:>20} {:>20}",
        format!("{outputs} x {inputs}"),
        "rows",
        "f32 / portable",
        "int8 / portable",
        "int8 / f32",
        "f32, of arithmetic",
        "int8, of arithmetic"
    );
    let Stack { f32, int8 } = Stack::new(&[(outputs, inputs)]);
    let x = numbers(12 * inputs);
    for rows in [1, 4, 12] {
        for isa in Isa::available() {
            let [mut y, mut z, mut portable, mut portable8] =
                [(); 4].map(|()| vec![0.0; 12 * outputs]);
            let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| Scratch::default());
            let products = rows * outputs * inputs;
            let [f32_portable, f32, int8_portable, int8, floats, integers] = race(
                101,
                [
                    &mut || apply_with(Isa::Portable, &f32, rows, &x, &mut portable, &mut a),
                    &mut || apply_with(isa, &f32, rows, &x, &mut y, &mut b),
                    &mut || apply_with(Isa::Portable, &int8, rows, &x, &mut portable8, &mut c),
                    &mut || apply_with(isa, &int8, rows, &x, &mut z, &mut d),
                    &mut || {
                        black_box(yardstick::multiply_and_add(isa.name(), products));
                    },
                    &mut || {
                        black_box(yardstick::multiply_integers(isa.name(), products));
                    },
                ],
            );
            let of = |limit: f64, time: f64, is_known: bool| {
                if is_known { format!("{:.2}", limit / time) } else { "–".to_owned() }
            };
            println!(
                "{:<10} {rows:>4} {:>16.2} {:>16.2} {:>12.2} {:>20} {:>20}",
                isa.name(),
                f32_portable / f32,
                int8_portable / int8,
                f32 / int8,
                of(floats, f32, yardstick::multiply_and_add(isa.name(), 1).is_some()),
                of(integers, int8, yardstick::multiply_integers(isa.name(), 1).is_some())
            );
        }
    }
}

/// Race plain reads, f32 and int8, for each of the numbers of rows, and add up.
fn compare(name: &str, shapes: &[(usize, usize)], rows: &[usize], repetitions: usize) {
    let stack = Stack::new(shapes);
    let most = rows.iter().max().copied().unwrap_or_default();
    let x = numbers(most * 4096);
    let (mut y, mut z) = (vec![0.0; most * 4096], vec![0.0; most * 4096]);
    let (mut scratch, mut scratch8) = (Scratch::default(), Scratch::default());
    let plain = vec![1_u64; bytes(&stack.f32) / 8];
    let read = fastest(&plain);
    let mut total = [0.0; 4];
    for &rows in rows {
        let times = race(
            repetitions,
            [
                &mut || {
                    black_box(yardstick::read::<1>(black_box(&plain)));
                },
                &mut || {
                    black_box(read(black_box(&plain)));
                },
                &mut || apply(&stack.f32, rows, &x, &mut y, &mut scratch),
                &mut || apply(&stack.int8, rows, &x, &mut z, &mut scratch8),
            ],
        );
        for (total, time) in total.iter_mut().zip(times) {
            *total += time;
        }
    }
    let [sequential, read, f32, int8] = total;
    let gb = (bytes(&stack.f32) * rows.len()) as f64 / 1e9;
    println!(
        "{name:<34} {:>10.1} {:>10.1} {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
        gb / sequential,
        gb / read,
        f32 / sequential,
        f32 / read,
        read / f32,
        f32 / int8
    );
}

/// Without arguments the two cases that matter; `--rows` adds each number of rows, `--kernels` is
/// about all sets of kernels.
fn main() {
    if std::env::args().any(|argument| argument == "--kernels") {
        // Of 512 inputs a panel of weights fits into L1 beside the rows; of 2,048 it does not.
        compare_kernels(512, 512);
        return compare_kernels(512, 2048);
    }
    println!(
        "kernels: {}; plain reads in GB/s, from one place (seq.) and from the best number of places",
        isa()
    );
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "read seq.", "read", "f32 / seq.", "f32 / read", "read / f32", "f32 / int8"
    );
    compare("LSTM step, 812 -> 2048, 1 row", &[(2048, 812)], &[1], 401);
    let layer = [(1536, 512), (512, 512), (2048, 512), (512, 2048)];
    let all: Vec<usize> = (1..=12).collect();
    compare("transformer, 4 layers, rows 1..=12", &layer.repeat(4), &all, 15);
    if std::env::args().any(|argument| argument == "--rows") {
        for rows in all {
            compare(&format!("transformer, 4 layers, {rows} rows"), &layer.repeat(4), &[rows], 15);
        }
    }
}
