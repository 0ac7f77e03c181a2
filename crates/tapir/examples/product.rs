//! One product of a matrix with some rows, so many times, by the kernels that `TAPIR_KERNELS` names:
//! for those who count instructions (docs/machines.md).
//!
//!     cargo run --release -p tapir --example product -- int8 12 1

use std::hint::black_box;

use tapir::kernels::{Matrix, Scratch, isa, quantize_rows};

/// Outputs and inputs: enough for all shapes of tiles, and few to wait for under an emulator.
const SIZE: usize = 256;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |text: &String| text.parse().ok();
    let ([kind, ..], Some([rows, times])) = (
        &arguments[..],
        arguments.iter().skip(1).filter_map(numbers).collect::<Vec<usize>>().first_chunk().copied(),
    ) else {
        eprintln!("expected: f32 or int8, the number of rows, and how many times");
        std::process::exit(2);
    };
    let weights: Vec<f32> = (0..SIZE * SIZE).map(|i| (i % 251) as f32 / 125.0 - 1.0).collect();
    let matrix = if kind == "int8" {
        let (quantized, scales) = quantize_rows(&weights, SIZE, SIZE);
        Matrix::from_int8(&quantized, &scales, SIZE, SIZE)
    } else {
        Matrix::from_f32(&weights, SIZE, SIZE)
    };
    let x: Vec<f32> = (0..rows * SIZE).map(|i| (i % 127) as f32 / 63.0 - 1.0).collect();
    let mut y = vec![0.0; rows * SIZE];
    let mut scratch = Scratch::default();
    for _ in 0..times {
        matrix.apply(black_box(&x), rows, &[], black_box(&mut y), &mut scratch);
    }
    println!("{kind}, {rows} rows, {times} times, {}: {}", isa(), y.iter().sum::<f32>());
}
