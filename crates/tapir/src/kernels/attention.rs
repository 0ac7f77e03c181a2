//! Softmax attention, all heads and rows in one kernel.

use super::isa::{self, Kernel, isa};
use super::simd::{LANES, Simd};
use super::vectors::{Softmax, write_part};

/// Panels of keys, or vectors of values, that are summed at once: enough to hide the latency of an
/// FMA.
const AT_ONCE: usize = 4;

struct Attention<'a> {
    /// [rows, 3, heads, size]
    qkv: &'a [f32],
    /// [rows, heads, size]
    attended: &'a mut [f32],
    rows: usize,
    heads: usize,
    room: Room<'a>,
}

/// Working memory. A head's keys and values lie a whole row of all heads apart, which in a cache is
/// often the same place: put together they are read from front to back, at any length.
struct Room<'a> {
    /// [rows / 16, size, 16]: the keys of a head, 16 rows to the panel, so that the scores of 16 rows
    /// are lanes of one sum.
    keys: &'a mut [f32],
    /// [rows, size]: the values of a head, each row in whole vectors.
    values: &'a mut [f32],
    /// [rows], in whole vectors.
    scores: &'a mut [f32],
}

impl Room<'_> {
    /// Takes the keys and values of a head.
    fn fill(&mut self, qkv: &[f32], d: usize, head: usize, size: usize) {
        let rows = || qkv.chunks_exact(3 * d);
        self.keys.fill(0.0);
        for (i, row) in rows().enumerate() {
            let panel = &mut self.keys[i / LANES * LANES * size..][..LANES * size];
            let lanes = panel.iter_mut().skip(i % LANES).step_by(LANES);
            lanes.zip(&row[d + head * size..][..size]).for_each(|(lane, key)| *lane = *key);
        }
        let width = size.next_multiple_of(LANES);
        for (values, row) in self.values.chunks_exact_mut(width).zip(rows()) {
            let (values, rest) = values.split_at_mut(size);
            values.copy_from_slice(&row[2 * d + head * size..][..size]);
            rest.fill(0.0);
        }
    }
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { qkv, attended, rows, heads, mut room } = self;
        let d = attended.len() / rows;
        let size = d / heads;
        let scale = s.splat(1.0 / (size as f32).sqrt());
        for head in 0..heads {
            room.fill(qkv, d, head, size);
            let Room { keys, values, scores } = &mut room;
            for (query, out) in qkv.chunks_exact(3 * d).zip(attended.chunks_exact_mut(d)) {
                let query = &query[head * size..][..size];
                let groups = keys.chunks_exact(AT_ONCE * LANES * size);
                let left = groups.remainder();
                let (first, last) = scores.split_at_mut(scores.len() - left.len() / size);
                for (panels, scores) in groups.zip(first.chunks_exact_mut(AT_ONCE * LANES)) {
                    products::<S, AT_ONCE>(s, query, panels, scale, scores);
                }
                for (panel, scores) in
                    left.chunks_exact(LANES * size).zip(last.chunks_exact_mut(LANES))
                {
                    products::<S, 1>(s, query, panel, scale, scores);
                }
                let scores = &mut scores[..rows];
                Softmax(scores).run(s);
                let out = &mut out[head * size..][..size];
                let width = size.next_multiple_of(LANES);
                let mut at = 0;
                while at < size {
                    if width - at >= AT_ONCE * LANES {
                        mix::<S, AT_ONCE>(s, scores, values, width, at, out);
                        at += AT_ONCE * LANES;
                    } else if width - at >= 2 * LANES {
                        mix::<S, 2>(s, scores, values, width, at, out);
                        at += 2 * LANES;
                    } else {
                        mix::<S, 1>(s, scores, values, width, at, out);
                        at += LANES;
                    }
                }
            }
        }
    }
}

/// A query times N panels of keys, scaled: each score is one sum, its terms in order.
#[inline(always)]
fn products<S: Simd, const N: usize>(
    s: S,
    query: &[f32],
    panels: &[f32],
    scale: S::F32,
    scores: &mut [f32],
) {
    let (keys, _) = panels.as_chunks::<LANES>();
    let mut sums = [s.splat(0.0); N];
    for (i, q) in query.iter().enumerate() {
        let q = s.splat(*q);
        for n in 0..N {
            sums[n] = s.fma(q, s.read(&keys[n * query.len() + i]), sums[n]);
        }
    }
    let (scores, _) = scores.as_chunks_mut::<LANES>();
    for n in 0..N {
        s.store(s.mul(sums[n], scale), &mut scores[n]);
    }
}

/// N vectors of the values, from `at` on, each value times its row's score.
#[inline(always)]
fn mix<S: Simd, const N: usize>(
    s: S,
    scores: &[f32],
    values: &[f32],
    width: usize,
    at: usize,
    out: &mut [f32],
) {
    let mut sums = [s.splat(0.0); N];
    for (score, values) in scores.iter().zip(values.chunks_exact(width)) {
        let score = s.splat(*score);
        let (values, _) = values[at..].as_chunks::<LANES>();
        for n in 0..N {
            sums[n] = s.fma(score, s.read(&values[n]), sums[n]);
        }
    }
    for (sum, out) in sums.into_iter().zip(out[at..].chunks_mut(LANES)) {
        write_part(s, sum, out);
    }
}

/// Each head: softmax(Q Kᵀ / √size) V, from `qkv`, `[rows, 3, heads, size]`, to `attended`, `[rows,
/// heads, size]`; `room` is working memory, which grows to what is needed.
///
/// One kernel for all of it: heads are short, and choosing the instructions anew for each product
/// took longer than the product.
pub(crate) fn attention(
    qkv: &[f32],
    attended: &mut [f32],
    rows: usize,
    heads: usize,
    room: &mut Vec<f32>,
) {
    assert_eq!(qkv.len(), 3 * attended.len(), "qkv is three times what is attended");
    assert!(heads > 0 && attended.len().is_multiple_of(rows.max(1) * heads), "rows of equal heads");
    if rows == 0 {
        return;
    }
    let size = attended.len() / rows / heads;
    let padded = rows.next_multiple_of(LANES);
    let [keys, values] = [padded * size, rows * size.next_multiple_of(LANES)];
    let needed = keys + values + padded;
    if room.len() < needed {
        room.resize(needed, 0.0);
    }
    let (keys, rest) = room[..needed].split_at_mut(keys);
    let (values, scores) = rest.split_at_mut(values);
    let room = Room { keys, values, scores };
    isa::run(isa(), Attention { qkv, attended, rows, heads, room });
}

#[cfg(test)]
mod tests {
    use super::super::softmax;
    use super::*;

    #[test]
    fn it_is_the_plain_sums_whatever_the_sizes() {
        for (rows, heads, size) in
            [(1, 1, 4), (3, 2, 16), (5, 8, 32), (7, 3, 20), (16, 1, 64), (67, 2, 40), (200, 2, 32)]
        {
            let d = heads * size;
            let qkv: Vec<f32> =
                (0..rows * 3 * d).map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0).collect();
            let mut attended = vec![1.0; rows * d];
            // What was in the working memory before does not matter.
            attention(&qkv, &mut attended, rows, heads, &mut vec![f32::NAN; 100]);
            for (row, head) in (0..rows).flat_map(|row| (0..heads).map(move |head| (row, head))) {
                let part = |row: usize, which: usize| {
                    &qkv[row * 3 * d + which * d + head * size..][..size]
                };
                let scale = 1.0 / (size as f32).sqrt();
                let dot = |a: &[f32], b: &[f32]| -> f32 {
                    a.iter().zip(b).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
                };
                let mut scores: Vec<f32> =
                    (0..rows).map(|key| dot(part(row, 0), part(key, 1)) * scale).collect();
                softmax(&mut scores);
                for i in 0..size {
                    let values: Vec<f32> = (0..rows).map(|key| part(key, 2)[i]).collect();
                    let expected = dot(&scores, &values);
                    let found = attended[row * d + head * size + i];
                    assert!((found - expected).abs() < 1e-5, "{found} not {expected}");
                }
            }
        }
    }
}
