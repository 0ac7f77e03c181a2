//! The incremental processor (§3): an LSTM that gives each word a label as it arrives. The first
//! pass.

use burn::tensor::Tensor;
use tapir::ProcessorConfig;

use crate::affine::Affine;
use crate::input::{Input, Words};
use crate::{Dropout, Leaves, ops};

/// LSTM layers between an input stage and a projection to logits ỹ.
pub(crate) struct Processor {
    input: Input,
    layers: Vec<Layer>,
    /// [H, labels]
    output: Affine,
}

struct Layer {
    /// [inputs, 4H], gates in the order i, f, g, o
    input: Tensor<2>,
    /// [H, 4H]
    state: Tensor<2>,
    /// [1, 4H]
    bias: Tensor<2>,
}

/// What the first pass makes of a batch, rows time-major: row t · batch + b is step t of sentence
/// b.
pub(crate) struct FirstPass {
    /// Embedded words before dropout, [rows, size of x]: what the controller reads, too
    pub(crate) x: Tensor<2>,
    /// [rows, H]
    pub(crate) h: Tensor<2>,
    /// ỹ, [rows, labels]
    pub(crate) logits: Tensor<2>,
}

impl Processor {
    pub(crate) fn new(leaves: &Leaves, sizes: &ProcessorConfig) -> Self {
        let layer = |l: usize| {
            let name = |part: &str| format!("processor.layers.{l}.gates.{part}");
            Layer {
                input: leaves.get(&name("weight.0")),
                state: leaves.get(&name("weight.1")),
                bias: leaves.get(&name("bias")),
            }
        };
        Self {
            input: Input::new(
                leaves,
                "processor",
                sizes.projection.is_some(),
                sizes.spelling.is_some(),
                sizes.affixes.is_some(),
            ),
            layers: (0..sizes.layers).map(layer).collect(),
            output: Affine::new(leaves, "processor.output"),
        }
    }

    /// Reads `steps` words of every sentence. Dropout on the embedded word, between layers and
    /// before the logits.
    pub(crate) fn forward(&self, words: &Words, steps: usize, dropout: &mut Dropout) -> FirstPass {
        let x = self.input.forward(words);
        let mut h = dropout.apply(x.clone());
        for (l, layer) in self.layers.iter().enumerate() {
            if l > 0 {
                h = dropout.apply(h);
            }
            let gates = ops::affine(h, layer.input.clone(), layer.bias.clone());
            h = ops::lstm(gates, layer.state.clone(), steps);
        }
        let logits = self.output.forward(dropout.apply(h.clone()));
        FirstPass { x, h, logits }
    }
}
