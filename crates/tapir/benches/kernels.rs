//! Products against a plain read of as many bytes, in the same run.
#![allow(unsafe_code, reason = "the yardstick is the fastest read that can be written")]

use std::hint::black_box;
use std::time::Instant;

use tapir::kernels::{Matrix, Scratch, isa, quantize_rows};

/// Read everything once, as fast as one thread can.
fn read<const STREAMS: usize>(bytes: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has the feature.
            return unsafe { read_avx512::<STREAMS>(bytes) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has the feature.
            return unsafe { read_avx2::<STREAMS>(bytes) };
        }
    }
    bytes.iter().fold(0, |all, x| all ^ x)
}

/// Read from several places at once, with eight independent accumulators; less than 512 bytes to the stream are left out.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_avx2<const STREAMS: usize>(bytes: &[u64]) -> u64 {
    use std::arch::x86_64::{
        _mm256_extract_epi64, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_xor_si256,
    };
    let mut sums = [_mm256_setzero_si256(); 8];
    let each = bytes.len() / STREAMS;
    let (run, length) = (8 / STREAMS, each / (8 / STREAMS) / 4);
    for i in 0..length {
        for (j, sum) in sums.iter_mut().enumerate() {
            let at = j / run * each + (i * run + j % run) * 4;
            // SAFETY: j / run < STREAMS, and (i + 1) * run * 4 <= each.
            *sum = _mm256_xor_si256(*sum, unsafe { _mm256_loadu_si256(bytes.as_ptr().add(at).cast()) });
        }
    }
    let all = sums.into_iter().fold(_mm256_setzero_si256(), |a, b| _mm256_xor_si256(a, b));
    _mm256_extract_epi64::<0>(all) as u64
}

/// The same with vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn read_avx512<const STREAMS: usize>(bytes: &[u64]) -> u64 {
    use std::arch::x86_64::{
        _mm512_loadu_si512, _mm512_reduce_add_epi64, _mm512_setzero_si512, _mm512_xor_si512,
    };
    let mut sums = [_mm512_setzero_si512(); 8];
    let each = bytes.len() / STREAMS;
    let (run, length) = (8 / STREAMS, each / (8 / STREAMS) / 8);
    for i in 0..length {
        for (j, sum) in sums.iter_mut().enumerate() {
            let at = j / run * each + (i * run + j % run) * 8;
            // SAFETY: j / run < STREAMS, and (i + 1) * run * 8 <= each.
            *sum = _mm512_xor_si512(*sum, unsafe { _mm512_loadu_si512(bytes.as_ptr().add(at).cast()) });
        }
    }
    let all = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_xor_si512(a, b));
    _mm512_reduce_add_epi64(all) as u64
}

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

/// Seconds that each of the contestants takes: the median of interleaved repetitions, or with `--best` the shortest,
/// for a machine that is busy with other things.
fn race<const N: usize>(repetitions: usize, mut contestants: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for repetition in 0..=repetitions {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            contestant();
            // The first repetition warms up.
            if repetition > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let best = std::env::args().any(|argument| argument == "--best");
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[if best { 0 } else { times.len() / 2 }]
    })
}

/// The fastest way to read these bytes: from one, two, four or eight places at once.
fn fastest(bytes: &[u64]) -> fn(&[u64]) -> u64 {
    let ways: [fn(&[u64]) -> u64; 4] = [read::<1>, read::<2>, read::<4>, read::<8>];
    let [mut one, mut two, mut four, mut eight] = ways.map(|way| {
        move || {
            black_box(way(black_box(bytes)));
        }
    });
    let times = race(15, [&mut one, &mut two, &mut four, &mut eight]);
    let best = (0..ways.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
    ways[best.expect("there are four")]
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
    for matrix in matrices {
        let x = &x[..rows * matrix.inputs()];
        matrix.apply(black_box(x), rows, &[], &mut y[..rows * matrix.outputs()], scratch);
    }
    black_box(y);
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
                    black_box(self::read::<1>(black_box(&plain)));
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

/// Without arguments the two cases that matter; `--rows` adds each number of rows.
fn main() {
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
