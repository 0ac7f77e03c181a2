//! The controller's attention over the memory (eqs. 4 to 6). Which revisions were made is known
//! beforehand, so φ is, too, and k̃ depends on nothing that the cells compute: only k̃ itself is
//! recurrent.

use tapir::kernels;

use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Summaries {
    pub(super) steps: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Saved {
    state: Array,
    phi: Array,
    score: Array,
    index: Array,
    /// tanh U of eq. 4, [steps, batch, memory, C]
    u: Vec<f32>,
    /// k̃ | s, [steps × batch, C + memory]
    output: Array,
}

/// The rows of φ that a row attends to, oldest first: at step t the entries of the last steps, at
/// most N.
fn entries(index: &Array, row: usize, t: usize) -> impl Iterator<Item = usize> + Clone + '_ {
    let slots = index.cols();
    index.data()[row * slots..][..t.min(slots)].iter().map(|entry| *entry as usize)
}

impl Function<6> for Summaries {
    type Saved = Saved;

    /// `keys` and `phi` are [entries, C], `index` is [rows, memory]: the entries of each row.
    fn forward(&self, [query, state, keys, phi, score, index]: [Array; 6]) -> (Array, Saved) {
        let (n, slots) = (state.rows(), index.cols());
        let batch = query.rows() / self.steps;
        let width = n + slots;
        let mut output = vec![0.0; self.steps * batch * width];
        let mut u = vec![0.0; self.steps * batch * slots * n];
        let mut summary = vec![0.0; batch * n];
        for t in 1..self.steps {
            let mut q = query.data()[t * batch * n..(t + 1) * batch * n].to_vec();
            if t > 1 {
                let product = Array::new(summary.clone(), batch, n).times(&state);
                kernels::axpy(1.0, product.data(), &mut q);
            }
            for b in 0..batch {
                let row = t * batch + b;
                let (k, s) = output[row * width..(row + 1) * width].split_at_mut(n);
                let entries = entries(&index, row, t);
                for (slot, i) in entries.clone().enumerate() {
                    let u = &mut u[(row * slots + slot) * n..(row * slots + slot + 1) * n];
                    let key = &keys.data()[i * n..(i + 1) * n];
                    u.iter_mut()
                        .zip(&q[b * n..(b + 1) * n])
                        .zip(key)
                        .for_each(|((u, q), k)| *u = q + k);
                    kernels::tanh(u);
                    s[slot] = kernels::dot(score.data(), u);
                }
                kernels::softmax(&mut s[..t.min(slots)]);
                for (slot, i) in entries.enumerate() {
                    kernels::axpy(s[slot], &phi.data()[i * n..(i + 1) * n], k);
                }
                summary[b * n..(b + 1) * n].copy_from_slice(k);
            }
        }
        let output = Array::new(output, self.steps * batch, width);
        (output.clone(), Saved { state, phi, score, index, u, output })
    }

    fn backward(&self, saved: Saved, grad: Array) -> [Array; 6] {
        let Saved { state, phi, score, index, u, output } = saved;
        let (n, slots) = (state.rows(), index.cols());
        let batch = grad.rows() / self.steps;
        let width = n + slots;
        let state = state.transpose();
        let rows = self.steps * batch;
        let mut d_query = vec![0.0; rows * n];
        let (mut d_keys, mut d_phi) = (vec![0.0; phi.data().len()], vec![0.0; phi.data().len()]);
        let mut d_score = vec![0.0; n];
        // What the next step says of this step's k̃.
        let mut carried = vec![0.0; batch * n];
        let mut d_u = vec![0.0; n];
        let mut d_s = vec![0.0; slots];
        for t in (1..self.steps).rev() {
            for b in 0..batch {
                let row = t * batch + b;
                let s = &output.data()[row * width + n..(row + 1) * width];
                let (d_k, d_out) = grad.data()[row * width..(row + 1) * width].split_at(n);
                let d_k: Vec<f32> =
                    d_k.iter().zip(&carried[b * n..(b + 1) * n]).map(|(a, c)| a + c).collect();
                let entries = entries(&index, row, t);
                for (slot, i) in entries.clone().enumerate() {
                    let at = i * n..(i + 1) * n;
                    d_s[slot] = d_out[slot] + kernels::dot(&d_k, &phi.data()[at.clone()]);
                    kernels::axpy(s[slot], &d_k, &mut d_phi[at]);
                }
                let mean: f32 = s[..t.min(slots)].iter().zip(&d_s).map(|(s, d)| s * d).sum();
                let d_q = &mut d_query[row * n..(row + 1) * n];
                for (slot, i) in entries.enumerate() {
                    let d_e = s[slot] * (d_s[slot] - mean);
                    let u = &u[(row * slots + slot) * n..(row * slots + slot + 1) * n];
                    kernels::axpy(d_e, u, &mut d_score);
                    d_u.iter_mut()
                        .zip(u)
                        .zip(score.data())
                        .for_each(|((d, u), v)| *d = d_e * v * (1.0 - u * u));
                    kernels::axpy(1.0, &d_u, d_q);
                    kernels::axpy(1.0, &d_u, &mut d_keys[i * n..(i + 1) * n]);
                }
            }
            if t > 1 {
                let now = d_query[t * batch * n..(t + 1) * batch * n].to_vec();
                carried.copy_from_slice(Array::new(now, batch, n).times(&state).data());
            }
        }
        // Σ_t k̃_{t-1}ᵀ δq_t, k̃ of the first step being zero.
        let d_state = if self.steps > 2 {
            let last = (self.steps - 2) * batch;
            let k = output.data().chunks_exact(width).skip(batch).take(last);
            let k = Array::new(k.flat_map(|row| &row[..n]).copied().collect(), last, n);
            k.transposed_times(&Array::new(d_query[2 * batch * n..].to_vec(), last, n))
        } else {
            Array::zeros(n, n)
        };
        [
            Array::new(d_query, rows, n),
            d_state,
            Array::new(d_keys, phi.rows(), n),
            Array::new(d_phi, phi.rows(), n),
            Array::new(d_score, 1, n),
            Array::zeros(index.rows(), index.cols()),
        ]
    }
}
