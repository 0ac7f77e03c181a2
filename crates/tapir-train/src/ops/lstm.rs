//! The recurrence of the incremental processor.

use tapir::kernels;

use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Lstm {
    pub(super) steps: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Saved {
    /// [H, 4H]
    state: Array,
    /// i, f, g, o after their nonlinearities, [steps × batch, 4H]
    gates: Vec<f32>,
    /// c, [steps × batch, H]
    cells: Vec<f32>,
    /// [steps × batch, H]
    h: Array,
}

impl Function<2> for Lstm {
    type Saved = Saved;

    fn forward(&self, [gates, state]: [Array; 2]) -> (Array, Saved) {
        let n = state.rows();
        let batch = gates.rows() / self.steps;
        let mut gates = gates.data().to_vec();
        let mut cells = vec![0.0; self.steps * batch * n];
        let mut h = vec![0.0; self.steps * batch * n];
        let mut before = vec![0.0; batch * n];
        for t in 0..self.steps {
            let now = &mut gates[t * batch * 4 * n..(t + 1) * batch * 4 * n];
            if t > 0 {
                let last = h[(t - 1) * batch * n..t * batch * n].to_vec();
                let product = Array::new(last, batch, n).times(&state);
                kernels::axpy(1.0, product.data(), now);
            }
            let rows = t * batch * n..(t + 1) * batch * n;
            let (c, h) = (&mut cells[rows.clone()], &mut h[rows]);
            cell(now, &before, c, h, n);
            before.copy_from_slice(c);
        }
        let h = Array::new(h, self.steps * batch, n);
        (h.clone(), Saved { state, gates, cells, h })
    }

    fn backward(&self, saved: Saved, grad: Array) -> [Array; 2] {
        let Saved { state, gates, cells, h } = saved;
        let n = state.rows();
        let batch = grad.rows() / self.steps;
        let state = state.transpose();
        let mut d_gates = gates;
        let mut d_cell = vec![0.0; batch * n];
        let mut d_h = vec![0.0; batch * n];
        let zeros = vec![0.0; batch * n];
        for t in (0..self.steps).rev() {
            let rows = t * batch * n..(t + 1) * batch * n;
            kernels::axpy(1.0, &grad.data()[rows.clone()], &mut d_h);
            let now = &mut d_gates[t * batch * 4 * n..(t + 1) * batch * 4 * n];
            let before = if t > 0 { &cells[(t - 1) * batch * n..t * batch * n] } else { &zeros };
            cell_gradient(now, before, &cells[rows], &d_h, &mut d_cell, n);
            if t > 0 {
                d_h.copy_from_slice(Array::new(now.to_vec(), batch, 4 * n).times(&state).data());
            }
        }
        // One product over all steps: Σ_t h_{t-1}ᵀ δ_t.
        let d_state = if self.steps > 1 {
            let last = (self.steps - 1) * batch;
            let h = Array::new(h.data()[..last * n].to_vec(), last, n);
            let d = Array::new(d_gates[batch * 4 * n..].to_vec(), last, 4 * n);
            h.transposed_times(&d)
        } else {
            Array::zeros(n, 4 * n)
        };
        [Array::new(d_gates, self.steps * batch, 4 * n), d_state]
    }
}

/// Activates the gates in place and makes c and h: gates [batch, 4n], before, c, h [batch, n].
pub(super) fn cell(gates: &mut [f32], before: &[f32], c: &mut [f32], h: &mut [f32], n: usize) {
    for (b, gates) in gates.chunks_exact_mut(4 * n).enumerate() {
        let at = b * n..(b + 1) * n;
        kernels::sigmoid(&mut gates[..2 * n]);
        kernels::tanh(&mut gates[2 * n..3 * n]);
        kernels::sigmoid(&mut gates[3 * n..]);
        let (i, rest) = gates.split_at(n);
        let (f, rest) = rest.split_at(n);
        let (g, o) = rest.split_at(n);
        let (before, c, h) = (&before[at.clone()], &mut c[at.clone()], &mut h[at]);
        for j in 0..n {
            c[j] = f[j] * before[j] + i[j] * g[j];
        }
        h.copy_from_slice(c);
        kernels::tanh(h);
        h.iter_mut().zip(o).for_each(|(h, o)| *h *= o);
    }
}

/// The other way: activated gates become the gradients of their arguments; `d_cell` that of c
/// becomes that of `before`.
pub(super) fn cell_gradient(
    gates: &mut [f32],
    before: &[f32],
    c: &[f32],
    d_h: &[f32],
    d_cell: &mut [f32],
    n: usize,
) {
    let mut tanh = vec![0.0; n];
    for (b, gates) in gates.chunks_exact_mut(4 * n).enumerate() {
        let at = b * n..(b + 1) * n;
        tanh.copy_from_slice(&c[at.clone()]);
        kernels::tanh(&mut tanh);
        let (before, d_h, d_cell) = (&before[at.clone()], &d_h[at.clone()], &mut d_cell[at]);
        let (i, rest) = gates.split_at_mut(n);
        let (f, rest) = rest.split_at_mut(n);
        let (g, o) = rest.split_at_mut(n);
        for j in 0..n {
            let d_c = d_cell[j] + d_h[j] * o[j] * (1.0 - tanh[j] * tanh[j]);
            let (d_i, d_f, d_g, d_o) = (d_c * g[j], d_c * before[j], d_c * i[j], d_h[j] * tanh[j]);
            d_cell[j] = d_c * f[j];
            i[j] = d_i * i[j] * (1.0 - i[j]);
            f[j] = d_f * f[j] * (1.0 - f[j]);
            g[j] = d_g * (1.0 - g[j] * g[j]);
            o[j] = d_o * o[j] * (1.0 - o[j]);
        }
    }
}
