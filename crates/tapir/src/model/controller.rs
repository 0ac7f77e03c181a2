//! The controller (§3.1): an LSTMN that relates the new word to what is in the memory.

use super::Affine;
use super::scratch::{Scratch, take};
use crate::kernels;
use crate::tensors::Tensors;
use crate::{ControllerConfig, ControllerInput, Result};

/// LSTMN layers; all attend over the same φ, each over its own cells.
pub(crate) struct Controller {
    layers: Vec<Layer>,
    hidden: usize,
    /// What the first layer's gates see of a word besides x.
    inputs: Vec<ControllerInput>,
}

struct Layer {
    /// W_h h + W_k̃ k̃ + b_u of eq. 4: [C, H + C], acting on [h ; k̃]
    query: Affine,
    /// W_c φ of eq. 4: [C, C]
    key: Affine,
    /// v of eq. 5: [C], and its bias
    score: (Vec<f32>, f32),
    /// W of eq. 7: [4C, C + inputs], acting on [k̃ ; x] (and, behind x, on what else the first layer
    /// sees of the word), gates in the order i, f, ĉ, o
    gates: Affine,
}

impl Controller {
    pub(crate) fn load(
        tensors: &Tensors,
        sizes: &ControllerConfig,
        hidden: usize,
        word: usize,
        labels: usize,
    ) -> Result<Self> {
        let n = sizes.hidden;
        let input = sizes.input_size(word, hidden, labels);
        let layer = |l: usize| {
            let name = |part: &str| format!("controller.layers.{l}.{part}");
            let v = tensors.values(&name("score.weight"), &[1, n])?;
            let b = tensors.values(&name("score.bias"), &[1])?[0];
            Ok(Layer {
                query: Affine::load(tensors, &name("query"), n, hidden + n)?,
                key: Affine::load(tensors, &name("key"), n, n)?,
                score: (v, b),
                gates: Affine::load(
                    tensors,
                    &name("gates"),
                    4 * n,
                    n + if l == 0 { input } else { n },
                )?,
            })
        };
        let layers = (0..sizes.layers).map(layer).collect::<Result<_>>()?;
        Ok(Self { layers, hidden: n, inputs: sizes.inputs.clone() })
    }

    /// Size of k.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    pub(crate) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Size of a row of the controller's tape: k̃ and c of every layer, [layers, 2, C].
    pub(crate) fn state_size(&self) -> usize {
        self.layers.len() * 2 * self.hidden
    }

    /// Size of a row of memory: φ and every layer's W_c φ, [1 + layers, C].
    pub(crate) fn memory_size(&self) -> usize {
        (1 + self.layers.len()) * self.hidden
    }

    pub(crate) fn bytes(&self) -> usize {
        self.layers
            .iter()
            .map(|l| l.query.bytes() + l.key.bytes() + size_of_val(&*l.score.0) + l.gates.bytes())
            .sum()
    }

    /// W_c φ of one layer for φ: [rows, C].
    pub(crate) fn keys(
        &self,
        layer: usize,
        phi: &[f32],
        rows: usize,
        keys: &mut [f32],
        scratch: &mut kernels::Scratch,
    ) {
        self.layers[layer].key.apply(phi, rows, keys, scratch);
    }

    /// Reads the words in `scratch.x`, one of each of several streams, and leaves k_t of the last
    /// layer, [streams, C], in `scratch.k`. `state` has a row of [`state_size`](Self::state_size) a
    /// stream.
    pub(crate) fn step<'a>(
        &self,
        streams: usize,
        recall: impl Fn(usize) -> Recall<'a>,
        state: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let n = self.hidden;
        let (width, depth) = (self.memory_size(), self.state_size());
        let word = scratch.x.len() / streams;
        let (u, rest) = take(&mut scratch.gates, n + streams * 5 * n).split_at_mut(n);
        let (c_summaries, gates) = rest.split_at_mut(streams * n);
        for (l, layer) in self.layers.iter().enumerate() {
            let (k_at, c_at) = (2 * l * n..(2 * l + 1) * n, (2 * l + 1) * n..2 * (l + 1) * n);
            scratch.joined.clear();
            for stream in 0..streams {
                let Recall { h, cells, .. } = recall(stream);
                scratch.joined.extend_from_slice(h);
                scratch.joined.extend_from_slice(&cells[cells.len() - depth..][k_at.clone()]);
            }
            let queries = take(&mut scratch.cell, streams * n);
            layer.query.apply(&scratch.joined, streams, queries, &mut scratch.kernel);

            scratch.joined.clear();
            for stream in 0..streams {
                let Recall { h, output, memory, cells } = recall(stream);
                let query = &queries[stream * n..][..n];
                let k_summary = &mut state[stream * depth..][k_at.clone()];
                let c_summary = &mut c_summaries[stream * n..][..n];
                k_summary.fill(0.0);
                c_summary.fill(0.0);
                let scores = take(&mut scratch.scores, memory.len() / width);
                for (score, entry) in scores.iter_mut().zip(memory.chunks_exact(width)) {
                    let key = &entry[(1 + l) * n..(2 + l) * n];
                    u.iter_mut().zip(query.iter().zip(key)).for_each(|(u, (q, k))| *u = q + k);
                    kernels::tanh(u);
                    *score = kernels::dot(&layer.score.0, u) + layer.score.1;
                }
                kernels::softmax(scores);
                let rows = memory.chunks_exact(width).zip(cells.chunks_exact(depth));
                for (score, (entry, cells)) in scores.iter().zip(rows) {
                    kernels::axpy(*score, &entry[..n], k_summary);
                    kernels::axpy(*score, &cells[c_at.clone()], c_summary);
                }
                scratch.joined.extend_from_slice(k_summary);
                if l > 0 {
                    scratch.joined.extend_from_slice(&scratch.k[stream * n..][..n]);
                    continue;
                }
                scratch.joined.extend_from_slice(&scratch.x[stream * word..][..word]);
                for input in &self.inputs {
                    match input {
                        ControllerInput::State => scratch.joined.extend_from_slice(h),
                        ControllerInput::Output => {
                            let at = scratch.joined.len();
                            scratch.joined.extend_from_slice(output);
                            kernels::softmax(&mut scratch.joined[at..]);
                        }
                    }
                }
            }
            layer.gates.apply(&scratch.joined, streams, gates, &mut scratch.kernel);
            let summaries = gates.chunks_exact(4 * n).zip(c_summaries.chunks_exact(n));
            let results = state
                .chunks_exact_mut(depth)
                .zip(take(&mut scratch.k, streams * n).chunks_exact_mut(n));
            for ((gates, c_summary), (state, k)) in summaries.zip(results) {
                kernels::gates(gates, c_summary, &mut state[c_at.clone()], k);
            }
        }
    }
}

/// What the controller reads of a stream besides the new word.
pub(crate) struct Recall<'a> {
    /// The processor's h.
    pub(crate) h: &'a [f32],
    /// The first pass's logits ỹ.
    pub(crate) output: &'a [f32],
    /// The rows of memory of the last steps, at most N; none at the first step.
    pub(crate) memory: &'a [f32],
    /// The controller's own rows of the same steps (cells c_i of eq. 6), the last of which is step
    /// t-1; at the first step a row of zeros.
    pub(crate) cells: &'a [f32],
}
