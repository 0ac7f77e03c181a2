//! Softmax attention, all heads and rows in one kernel.

use super::isa::{self, Kernel, isa};
use super::simd::Simd;
use super::vectors::{Axpy, Dot, Softmax};

struct Attention<'a> {
    /// [rows, 3, heads, size]
    qkv: &'a [f32],
    /// [rows, heads, size]
    attended: &'a mut [f32],
    /// [rows]
    scores: &'a mut [f32],
    heads: usize,
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { qkv, attended, scores, heads } = self;
        let d = attended.len() / scores.len();
        let size = d / heads;
        let scale = 1.0 / (size as f32).sqrt();
        for (query, out) in qkv.chunks_exact(3 * d).zip(attended.chunks_exact_mut(d)) {
            for (head, out) in out.chunks_exact_mut(size).enumerate() {
                let query = &query[head * size..][..size];
                for (score, row) in scores.iter_mut().zip(qkv.chunks_exact(3 * d)) {
                    *score = Dot(query, &row[d + head * size..][..size]).run(s) * scale;
                }
                Softmax(scores).run(s);
                out.fill(0.0);
                for (score, row) in scores.iter().zip(qkv.chunks_exact(3 * d)) {
                    Axpy(*score, &row[2 * d + head * size..][..size], out).run(s);
                }
            }
        }
    }
}

/// Each head: softmax(Q Kᵀ / √size) V, from `qkv`, `[rows, 3, heads, size]`, to `attended`, `[rows,
/// heads, size]`; `scores` is room for `[rows]`.
///
/// One kernel for all of it: heads are short, and choosing the instructions anew for each product
/// took longer than the product.
pub(crate) fn attention(qkv: &[f32], attended: &mut [f32], scores: &mut [f32], heads: usize) {
    assert_eq!(qkv.len(), 3 * attended.len(), "qkv is three times what is attended");
    assert!(
        heads > 0 && attended.len().is_multiple_of(scores.len().max(1) * heads),
        "rows of equal heads"
    );
    if !scores.is_empty() {
        isa::run(isa(), Attention { qkv, attended, scores, heads });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{axpy, dot, softmax};
    use super::*;

    #[test]
    fn it_is_its_parts_to_the_bit() {
        for (rows, heads, size) in [(1, 1, 4), (3, 2, 16), (5, 8, 32), (7, 3, 20)] {
            let d = heads * size;
            let qkv: Vec<f32> =
                (0..rows * 3 * d).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
            let mut attended = vec![1.0; rows * d];
            attention(&qkv, &mut attended, &mut vec![0.0; rows], heads);
            for (row, head) in (0..rows).flat_map(|row| (0..heads).map(move |head| (row, head))) {
                let part = |row: usize, which: usize| {
                    &qkv[row * 3 * d + which * d + head * size..][..size]
                };
                let scale = 1.0 / (size as f32).sqrt();
                let mut scores: Vec<f32> =
                    (0..rows).map(|key| dot(part(row, 0), part(key, 1)) * scale).collect();
                softmax(&mut scores);
                let mut expected = vec![0.0; size];
                scores
                    .iter()
                    .enumerate()
                    .for_each(|(key, score)| axpy(*score, part(key, 2), &mut expected));
                assert_eq!(&attended[row * d + head * size..][..size], expected);
            }
        }
    }
}
