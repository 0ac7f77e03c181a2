//! The controller (§3.1): an LSTMN that relates the new word to what is in the memory.

use burn::tensor::{Tensor, activation::softmax};
use tapir::{ControllerConfig, ControllerInput};

use crate::affine::Affine;
use crate::memory::Entries;
use crate::processor::FirstPass;
use crate::{Leaves, ops};

/// LSTMN layers; all attend over the same φ, each over its own cells.
pub(crate) struct Controller {
    layers: Vec<Layer>,
    memory: usize,
    inputs: Vec<ControllerInput>,
}

struct Layer {
    /// W_h of eq. 4, [H, C], and b_u
    query: Tensor<2>,
    query_bias: Tensor<2>,
    /// W_k̃ of eq. 4, [C, C]
    summary: Tensor<2>,
    /// W_c of eq. 4, [C, C]
    key: Affine,
    /// v of eq. 5, [1, C]; a bias of it would cancel in the softmax
    score: Tensor<2>,
    /// W of eq. 7 in two, [C, 4C] for k̃ and [inputs, 4C] for x; gates in the order i, f, ĉ, o
    gates_summary: Tensor<2>,
    gates_input: Tensor<2>,
    gates_bias: Tensor<2>,
}

impl Controller {
    pub(crate) fn new(leaves: &Leaves, sizes: &ControllerConfig) -> Self {
        let layer = |l: usize| {
            let name = |part: &str| format!("controller.layers.{l}.{part}");
            Layer {
                query: leaves.get(&name("query.weight.0")),
                query_bias: leaves.get(&name("query.bias")),
                summary: leaves.get(&name("query.weight.1")),
                key: Affine::new(leaves, &name("key")),
                score: leaves.get(&name("score.weight")).transpose(),
                gates_summary: leaves.get(&name("gates.weight.0")),
                gates_input: leaves.get(&name("gates.weight.1")),
                gates_bias: leaves.get(&name("gates.bias")),
            }
        };
        Self {
            layers: (0..sizes.layers).map(layer).collect(),
            memory: sizes.memory,
            inputs: sizes.inputs.clone(),
        }
    }

    /// What the gates of the first layer see of each word, [rows, inputs].
    pub(crate) fn input(&self, first: &FirstPass) -> Tensor<2> {
        let seen = self.inputs.iter().map(|input| match input {
            ControllerInput::State => first.h.clone(),
            ControllerInput::Output => softmax(first.logits.clone(), 1),
        });
        let all: Vec<Tensor<2>> = std::iter::once(first.x.clone()).chain(seen).collect();
        Tensor::cat(all, 1)
    }

    /// The gates' input [rows, inputs], h [rows, H], rows time-major, and φ [entries, C] to k of the
    /// last layer, [rows, C].
    pub(crate) fn forward(
        &self,
        input: Tensor<2>,
        h: Tensor<2>,
        phi: Tensor<2>,
        entries: &Entries,
        steps: usize,
    ) -> Tensor<2> {
        let mut k = input;
        for layer in &self.layers {
            let query = ops::affine(h.clone(), layer.query.clone(), layer.query_bias.clone());
            let keys = [layer.key.forward(phi.clone()), phi.clone()];
            let (summary, score) = (layer.summary.clone(), layer.score.clone());
            let index = entries.index.clone();
            let out = ops::summaries([query, summary], keys, score, index, steps);
            let c = layer.summary.dims()[0];
            let k_summary = out.clone().narrow(1, 0, c);
            let attention = out.narrow(1, c, self.memory);
            let gates = ops::affine(k, layer.gates_input.clone(), layer.gates_bias.clone())
                + k_summary.matmul(layer.gates_summary.clone());
            k = ops::cells(gates, attention, steps, self.memory);
        }
        k
    }
}
