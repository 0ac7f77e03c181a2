//! The incremental processor (§3): an LSTM that gives each word a label as it arrives. The first
//! pass.

use super::scratch::{Scratch, take};
use super::{Affine, Given, Input};
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
    /// [intents, H], if the model labels utterances
    intent: Option<Affine>,
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
        let (pass, projection, affixes) = ("processor", sizes.projection, sizes.affixes);
        let mut input = Input::load(tensors, pass, config, vocabulary, projection, affixes)?;
        if let (Some(d), Some(bert)) = (sizes.spelling, config.bert()) {
            input = input.with_spelling(tensors, "processor", bert.pieces, d)?;
        }
        let layer = |l: usize| {
            let inputs = if l == 0 { input.size() } else { hidden };
            Affine::load(
                tensors,
                &format!("processor.layers.{l}.gates"),
                4 * hidden,
                inputs + hidden,
            )
        };
        let layers = (0..sizes.layers).map(layer).collect::<Result<_>>()?;
        let output = Affine::load(tensors, "processor.output", labels, hidden)?;
        let intent = match config.intent_outputs() {
            0 => None,
            count => Some(Affine::load(tensors, "processor.intent", count, hidden)?),
        };
        Ok(Self { input, layers, output, intent, hidden })
    }

    /// Size of h.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Size of x.
    pub(crate) fn input_size(&self) -> usize {
        self.input.size()
    }

    /// Does it read the pieces of unknown words?
    pub(crate) fn reads_pieces(&self) -> bool {
        self.input.reads_pieces()
    }

    /// Size of a state row: h and c of every layer, [layers, 2, H].
    pub(crate) fn state_size(&self) -> usize {
        self.layers.len() * 2 * self.hidden
    }

    pub(crate) fn bytes(&self) -> usize {
        self.input.bytes()
            + self.layers.iter().map(Affine::bytes).sum::<usize>()
            + self.output.bytes()
            + self.intent.as_ref().map_or(0, Affine::bytes)
    }

    /// h of the last layer, which stands for the prefix read so far.
    pub(crate) fn top<'a>(&self, state: &'a [f32]) -> &'a [f32] {
        &state[state.len() - 2 * self.hidden..state.len() - self.hidden]
    }

    /// Reads a word of each of several streams: h_t = ψ(h_{t-1}, x_t), ỹ_t = f(h_t). Leaves x,
    /// [streams, inputs], in `scratch.x`.
    ///
    /// `before` and `state` are rows of [`state_size`](Self::state_size), `logits` rows of labels and
    /// `intents` rows of intents, one per stream.
    pub(crate) fn step(
        &self,
        words: Given,
        before: &[f32],
        state: &mut [f32],
        logits: &mut [f32],
        intents: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let (n, size) = (self.hidden, self.state_size());
        let streams = words.ids.len() / self.input.word_width();
        self.input.embed(words, &mut scratch.x, &mut scratch.joined, &mut scratch.kernel);
        let gates = take(&mut scratch.gates, streams * 4 * n);
        for (l, layer) in self.layers.iter().enumerate() {
            let (h, c) = (2 * l * n..(2 * l + 1) * n, (2 * l + 1) * n..2 * (l + 1) * n);
            scratch.joined.clear();
            for stream in 0..streams {
                let below = match l {
                    0 => &scratch.x[stream * self.input.size()..][..self.input.size()],
                    _ => &state[stream * size..][2 * (l - 1) * n..][..n],
                };
                scratch.joined.extend_from_slice(below);
                scratch.joined.extend_from_slice(&before[stream * size..][h.clone()]);
            }
            layer.apply(&scratch.joined, streams, gates, &mut scratch.kernel);
            let rows = before.chunks_exact(size).zip(state.chunks_exact_mut(size));
            for (gates, (before, state)) in gates.chunks_exact(4 * n).zip(rows) {
                let (h, c_after) = state[h.start..c.end].split_at_mut(n);
                kernels::gates(gates, &before[c.clone()], c_after, h);
            }
        }
        scratch.joined.clear();
        for state in state.chunks_exact(size) {
            scratch.joined.extend_from_slice(self.top(state));
        }
        self.output.apply(&scratch.joined, streams, logits, &mut scratch.kernel);
        if let Some(intent) = &self.intent {
            intent.apply(&scratch.joined, streams, intents, &mut scratch.kernel);
        }
    }
}
