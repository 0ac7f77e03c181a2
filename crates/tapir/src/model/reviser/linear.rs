//! Linear attention of the Linear Transformer reviser (appendix, eqs. 14 and 15).

use crate::kernels;
use crate::model::scratch::take;

const EPSILON: f32 = 1e-6;

/// qkv: [rows, 3d] to attended: [rows, d]; queries and keys are replaced by their features φ(x) =
/// elu(x) + 1.
///
/// S = Σ φ(K_j) V_jᵀ and Z = Σ φ(K_j) are summed once for all positions, so that the cost is linear
/// in the length.
pub(super) fn attend(
    qkv: &mut [f32],
    attended: &mut [f32],
    heads: usize,
    d: usize,
    sums: &mut Vec<f32>,
) {
    let size = d / heads;
    for row in qkv.chunks_exact_mut(3 * d) {
        row[..2 * d].iter_mut().for_each(|x| *x = if *x > 0.0 { *x + 1.0 } else { x.exp() });
    }
    let (s, z) = take(sums, size * size + size).split_at_mut(size * size);
    for head in 0..heads {
        let at = head * size..(head + 1) * size;
        s.fill(0.0);
        z.fill(0.0);
        for row in qkv.chunks_exact(3 * d) {
            let (key, value) = (&row[d..][at.clone()], &row[2 * d..][at.clone()]);
            for (k, s) in key.iter().zip(s.chunks_exact_mut(size)) {
                kernels::axpy(*k, value, s);
            }
            kernels::axpy(1.0, key, z);
        }
        for (row, out) in qkv.chunks_exact(3 * d).zip(attended.chunks_exact_mut(d)) {
            let (query, out) = (&row[at.clone()], &mut out[at.clone()]);
            let factor = 1.0 / (kernels::dot(query, z) + EPSILON);
            out.fill(0.0);
            for (q, s) in query.iter().zip(s.chunks_exact(size)) {
                kernels::axpy(q * factor, s, out);
            }
        }
    }
}
