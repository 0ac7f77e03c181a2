//! The controller's memory cells (eqs. 6 to 9): c̃ is a weighted sum of earlier cells, then an
//! LSTM's update.

use tapir::kernels;

use super::lstm::{cell, cell_gradient};
use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) steps: usize,
    pub(super) memory: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Saved {
    /// After their nonlinearities, [steps × batch, 4C]
    gates: Vec<f32>,
    /// s, [steps × batch, memory]
    attention: Array,
    /// c̃ and c, [steps × batch, C] each
    summaries: Vec<f32>,
    cells: Vec<f32>,
}

impl Function<2> for Cells {
    type Saved = Saved;

    fn forward(&self, [gates, attention]: [Array; 2]) -> (Array, Saved) {
        let n = gates.cols() / 4;
        let batch = gates.rows() / self.steps;
        let mut gates = gates.data().to_vec();
        let mut cells = vec![0.0; self.steps * batch * n];
        let mut summaries = cells.clone();
        let mut k = cells.clone();
        for t in 0..self.steps {
            let rows = t * batch * n..(t + 1) * batch * n;
            for b in 0..batch {
                let summary = &mut summaries[(t * batch + b) * n..(t * batch + b + 1) * n];
                let s = &attention.data()[(t * batch + b) * self.memory..];
                for (slot, i) in (t.saturating_sub(self.memory)..t).enumerate() {
                    let row = i * batch + b;
                    kernels::axpy(s[slot], &cells[row * n..(row + 1) * n], summary);
                }
            }
            let now = &mut gates[t * batch * 4 * n..(t + 1) * batch * 4 * n];
            cell(now, &summaries[rows.clone()], &mut cells[rows.clone()], &mut k[rows], n);
        }
        (Array::new(k, self.steps * batch, n), Saved { gates, attention, summaries, cells })
    }

    fn backward(&self, saved: Saved, grad: Array) -> [Array; 2] {
        let Saved { gates: mut d_gates, attention, summaries, cells } = saved;
        let n = grad.cols();
        let batch = grad.rows() / self.steps;
        let mut d_cells = vec![0.0; cells.len()];
        let mut d_attention = vec![0.0; attention.data().len()];
        for t in (0..self.steps).rev() {
            let rows = t * batch * n..(t + 1) * batch * n;
            let now = &mut d_gates[t * batch * 4 * n..(t + 1) * batch * 4 * n];
            // The gradient of c becomes that of c̃ ...
            let mut d_summary = d_cells[rows.clone()].to_vec();
            let (summary, d_k) = (&summaries[rows.clone()], &grad.data()[rows.clone()]);
            cell_gradient(now, summary, &cells[rows], d_k, &mut d_summary, n);
            // ... and goes on to the cells that it was made of.
            for b in 0..batch {
                let d = &d_summary[b * n..(b + 1) * n];
                let s = (t * batch + b) * self.memory;
                for (slot, i) in (t.saturating_sub(self.memory)..t).enumerate() {
                    let at = (i * batch + b) * n..(i * batch + b + 1) * n;
                    d_attention[s + slot] = kernels::dot(d, &cells[at.clone()]);
                    kernels::axpy(attention.data()[s + slot], d, &mut d_cells[at]);
                }
            }
        }
        [
            Array::new(d_gates, self.steps * batch, 4 * n),
            Array::new(d_attention, self.steps * batch, self.memory),
        ]
    }
}
