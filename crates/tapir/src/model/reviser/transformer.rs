//! Softmax attention of the Transformer reviser.

use crate::kernels;
use crate::model::scratch::take;

/// qkv: [rows, 3d] to attended: [rows, d]. Each head: softmax(Q Kᵀ / √size) V.
pub(super) fn attend(qkv: &[f32], attended: &mut [f32], heads: usize, d: usize, scores: &mut Vec<f32>) {
    let size = d / heads;
    let rows = qkv.len() / (3 * d);
    let scale = 1.0 / (size as f32).sqrt();
    let scores = take(scores, rows);
    for (query, out) in qkv.chunks_exact(3 * d).zip(attended.chunks_exact_mut(d)) {
        for head in 0..heads {
            let at = head * size..(head + 1) * size;
            for (score, row) in scores.iter_mut().zip(qkv.chunks_exact(3 * d)) {
                *score = kernels::dot(&query[at.clone()], &row[d..][at.clone()]) * scale;
            }
            kernels::softmax(scores);
            let out = &mut out[at.clone()];
            out.fill(0.0);
            for (score, row) in scores.iter().zip(qkv.chunks_exact(3 * d)) {
                kernels::axpy(*score, &row[2 * d..][at.clone()], out);
            }
        }
    }
}
