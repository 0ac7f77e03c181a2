//! The incremental processor (§3): an LSTM that gives each word a label as it arrives. The first pass.

use super::scratch::{Scratch, join, take};
use super::{Affine, Input};
use crate::kernels;
use crate::tensors::Tensors;
use crate::{Config, ProcessorConfig, Result, Vocabulary};

/// LSTM layers between an input stage and a projection to logits ỹ.
pub(crate) struct Processor {
    input: Input,
    /// Each [4H, inputs + H], acting on [x ; h], gates in the order i, f, g, o.
    layers: Vec<Affine>,
    /// [labels, H]
    output: Affine,
    hidden: usize,
}

impl Processor {
    pub(crate) fn load(
        tensors: &Tensors,
        config: &Config,
        sizes: &ProcessorConfig,
        vocabulary: &Vocabulary,
        labels: usize,
    ) -> Result<Self> {
        let hidden = sizes.hidden;
        let input = Input::load(tensors, "processor", config, vocabulary, sizes.projection)?;
        let layer = |l: usize| {
            let inputs = if l == 0 { input.size() } else { hidden };
            Affine::load(tensors, &format!("processor.layers.{l}.gates"), 4 * hidden, inputs + hidden)
        };
        let layers = (0..sizes.layers).map(layer).collect::<Result<_>>()?;
        let output = Affine::load(tensors, "processor.output", labels, hidden)?;
        Ok(Self { input, layers, output, hidden })
    }

    /// Size of h.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Size of x.
    pub(crate) fn input_size(&self) -> usize {
        self.input.size()
    }

    /// Size of a state row: h and c of every layer, [layers, 2, H].
    pub(crate) fn state_size(&self) -> usize {
        self.layers.len() * 2 * self.hidden
    }

    pub(crate) fn bytes(&self) -> usize {
        self.input.bytes() + self.layers.iter().map(Affine::bytes).sum::<usize>() + self.output.bytes()
    }

    /// h of the last layer, which stands for the prefix read so far.
    pub(crate) fn top<'a>(&self, state: &'a [f32]) -> &'a [f32] {
        &state[state.len() - 2 * self.hidden..state.len() - self.hidden]
    }

    /// Embeds a word into `scratch.x`.
    pub(crate) fn embed(&self, id: u32, scratch: &mut Scratch) {
        self.input.embed(&[id], &mut scratch.x, &mut scratch.joined, &mut scratch.kernel);
    }

    /// Reads the word in `scratch.x`: h_t = ψ(h_{t-1}, x_t), ỹ_t = f(h_t).
    pub(crate) fn step(&self, before: &[f32], state: &mut [f32], logits: &mut [f32], scratch: &mut Scratch) {
        let n = self.hidden;
        let gates = take(&mut scratch.gates, 4 * n);
        let rows = before.chunks_exact(2 * n).zip(state.chunks_exact_mut(2 * n));
        let mut below: &[f32] = &scratch.x;
        for (layer, (before, row)) in self.layers.iter().zip(rows) {
            let (h_before, c_before) = before.split_at(n);
            let (h, c) = row.split_at_mut(n);
            layer.apply(join(&mut scratch.joined, &[below, h_before]), 1, gates, &mut scratch.kernel);
            kernels::gates(gates, c_before, c, h);
            below = h;
        }
        self.output.apply(below, 1, logits, &mut scratch.kernel);
    }
}
