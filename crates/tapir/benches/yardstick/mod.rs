//! What results are compared with: a plain read of as many bytes, and a fair race in one run.
#![allow(unsafe_code, reason = "the yardstick is the fastest read that can be written")]

use std::hint::black_box;
use std::time::Instant;

/// Read everything once, as fast as one thread can.
pub(crate) fn read<const STREAMS: usize>(bytes: &[u64]) -> u64 {
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

/// Read from several places at once, with eight independent accumulators; less than 512 bytes to
/// the stream are left out.
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
            *sum = _mm256_xor_si256(*sum, unsafe {
                _mm256_loadu_si256(bytes.as_ptr().add(at).cast())
            });
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
            *sum = _mm512_xor_si512(*sum, unsafe {
                _mm512_loadu_si512(bytes.as_ptr().add(at).cast())
            });
        }
    }
    let all = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_xor_si512(a, b));
    _mm512_reduce_add_epi64(all) as u64
}

/// So many multiplications and additions of f32 in registers, as fast as one thread can by the
/// instructions of these kernels; none where that is not known here.
#[allow(dead_code, reason = "not every benchmark asks for it")]
pub(crate) fn multiply_and_add(kernels: &str, count: usize) -> Option<f32> {
    match kernels {
        #[cfg(target_arch = "x86_64")]
        "avx2" | "avxvnni" if is_x86_feature_detected!("fma") => {
            // SAFETY: the machine has the features.
            Some(unsafe { fma_avx2(count) })
        }
        #[cfg(target_arch = "x86_64")]
        "avx512" | "vnni" if is_x86_feature_detected!("avx512f") => {
            // SAFETY: the machine has the feature.
            Some(unsafe { fma_avx512(count) })
        }
        _ => {
            let _ = count;
            None
        }
    }
}

/// Twelve sums that do not wait for each other.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma_avx2(count: usize) -> f32 {
    use std::arch::x86_64::{_mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps};
    let [a, b] = [0.999, 0.001].map(|value| _mm256_set1_ps(black_box(value)));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 8) {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, a, b);
        }
    }
    sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum()
}

/// The same with vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma_avx512(count: usize) -> f32 {
    use std::arch::x86_64::{_mm512_cvtss_f32, _mm512_fmadd_ps, _mm512_set1_ps};
    let [a, b] = [0.999, 0.001].map(|value| _mm512_set1_ps(black_box(value)));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 16) {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    sums.into_iter().map(|sum| _mm512_cvtss_f32(sum)).sum()
}

/// So many multiplications of integers of 16 bits, two of which an instruction adds: where another
/// one adds to the sums, it runs beside these, on other ports.
#[allow(dead_code, reason = "not every benchmark asks for it")]
pub(crate) fn multiply_integers(kernels: &str, count: usize) -> Option<i32> {
    match kernels {
        #[cfg(target_arch = "x86_64")]
        "avx2" if is_x86_feature_detected!("avx2") => {
            // SAFETY: the machine has the feature.
            Some(unsafe { integers_avx2(count) })
        }
        #[cfg(target_arch = "x86_64")]
        "avxvnni" if is_x86_feature_detected!("avxvnni") => {
            // SAFETY: the machine has the features.
            Some(unsafe { integers_avxvnni(count) })
        }
        #[cfg(target_arch = "x86_64")]
        "avx512" if is_x86_feature_detected!("avx512bw") => {
            // SAFETY: the machine has the features.
            Some(unsafe { integers_avx512(count) })
        }
        #[cfg(target_arch = "x86_64")]
        "vnni" if is_x86_feature_detected!("avx512vnni") => {
            // SAFETY: the machine has the features.
            Some(unsafe { integers_vnni(count) })
        }
        _ => {
            let _ = count;
            None
        }
    }
}

/// Twelve sums, each of which is multiplied itself: nothing can be taken out of the loop.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn integers_avx2(count: usize) -> i32 {
    use std::arch::x86_64::{_mm256_cvtsi256_si32, _mm256_madd_epi16, _mm256_set1_epi32};
    let b = _mm256_set1_epi32(black_box(0x0003_0005));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 16) {
        for sum in &mut sums {
            *sum = _mm256_madd_epi16(*sum, b);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ _mm256_cvtsi256_si32(sum))
}

/// The same where one instruction multiplies and adds.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avxvnni")]
fn integers_avxvnni(count: usize) -> i32 {
    use std::arch::x86_64::{_mm256_cvtsi256_si32, _mm256_dpwssd_avx_epi32, _mm256_set1_epi32};
    let b = _mm256_set1_epi32(black_box(0x0003_0005));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 16) {
        for sum in &mut sums {
            *sum = _mm256_dpwssd_avx_epi32(*sum, *sum, b);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ _mm256_cvtsi256_si32(sum))
}

/// The same with vectors of 512 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn integers_avx512(count: usize) -> i32 {
    use std::arch::x86_64::{_mm512_cvtsi512_si32, _mm512_madd_epi16, _mm512_set1_epi32};
    let b = _mm512_set1_epi32(black_box(0x0003_0005));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 32) {
        for sum in &mut sums {
            *sum = _mm512_madd_epi16(*sum, b);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ _mm512_cvtsi512_si32(sum))
}

/// The same where one instruction multiplies and adds.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn integers_vnni(count: usize) -> i32 {
    use std::arch::x86_64::{_mm512_cvtsi512_si32, _mm512_dpwssd_epi32, _mm512_set1_epi32};
    let b = _mm512_set1_epi32(black_box(0x0003_0005));
    let mut sums = [b; 12];
    for _ in 0..count / (12 * 32) {
        for sum in &mut sums {
            *sum = _mm512_dpwssd_epi32(*sum, *sum, b);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ _mm512_cvtsi512_si32(sum))
}

/// Seconds that each of the contestants takes: the median of interleaved repetitions, or with
/// `--best` the shortest, for a machine that is busy with other things.
pub(crate) fn race<const N: usize>(
    repetitions: usize,
    mut contestants: [&mut dyn FnMut(); N],
) -> [f64; N] {
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
pub(crate) fn fastest(bytes: &[u64]) -> fn(&[u64]) -> u64 {
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
