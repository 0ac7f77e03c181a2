//! The reviser (§3): a bidirectional encoder that recomputes every label of the window. The second
//! pass.
//!
//! Input stage, layers, norm, logits. The parts can be exchanged one by one: the input stages, the
//! positions, the attention and the normalisation each have a file. A pretrained reviser is the same
//! layers with another input stage, activation and norm.

mod linear;
mod norm;
mod pieces;
mod positions;
mod words;

use norm::Norm;
pub(crate) use pieces::FIRST;
use pieces::Pieces;
use words::Words;

use super::Affine;
use super::scratch::{Scratch, take};
use crate::kernels;
use crate::tensors::Tensors;
use crate::{Activation, Config, Result, ReviserConfig, ReviserKind, Vocabulary, WordPieces};

pub(crate) struct Reviser {
    kind: ReviserKind,
    heads: usize,
    input: Stage,
    layers: Vec<Layer>,
    activation: Activation,
    /// None where the last layer's own is the last.
    norm: Option<Norm>,
    /// [labels, d]
    output: Affine,
    /// [intents, d], if the model labels utterances: of the mean of all words, or of `[CLS]`
    intent: Option<Affine>,
}

/// What it reads, and how.
enum Stage {
    Words(Words),
    Pieces(Pieces),
}

/// Post-norm: x ← norm₁(x + attention(x)), x ← norm₂(x + feed-forward(x)).
struct Layer {
    /// [3d, d]: queries, keys and values in one product
    qkv: Affine,
    /// [d, d]
    merge: Affine,
    /// [f, d]
    inner: Affine,
    /// [d, f]
    outer: Affine,
    norm1: Norm,
    norm2: Norm,
}

impl Reviser {
    /// `pieces` are those of a reviser that reads pieces.
    pub(crate) fn load(
        tensors: &Tensors,
        config: &Config,
        sizes: &ReviserConfig,
        vocabulary: &Vocabulary,
        pieces: Option<&WordPieces>,
        labels: usize,
    ) -> Result<Self> {
        let (d, f) = (sizes.hidden, sizes.feed_forward);
        let layer = |l: usize| {
            let name = |part: &str| format!("reviser.layers.{l}.{part}");
            Ok(Layer {
                qkv: Affine::load(tensors, &name("attention.qkv"), 3 * d, d)?,
                merge: Affine::load(tensors, &name("attention.output"), d, d)?,
                inner: Affine::load(tensors, &name("feed_forward.inner"), f, d)?,
                outer: Affine::load(tensors, &name("feed_forward.outer"), d, f)?,
                norm1: Norm::load(tensors, &name("norm1"), sizes)?,
                norm2: Norm::load(tensors, &name("norm2"), sizes)?,
            })
        };
        let layers = (0..sizes.layers).map(layer).collect::<Result<_>>()?;
        let output = Affine::load(tensors, "reviser.output", labels, d)?;
        let intent = match config.intent_outputs() {
            0 => None,
            count => Some(Affine::load(tensors, "reviser.intent", count, d)?),
        };
        // Last, when the file has shown that it holds matrices of this width.
        let (input, activation, norm) = match sizes.bert.as_ref().zip(pieces) {
            None => {
                let words = Words::load(tensors, config, sizes, vocabulary)?;
                let norm = Norm::load(tensors, "reviser.norm", sizes)?;
                (Stage::Words(words), Activation::Relu, Some(norm))
            }
            Some((bert, pieces)) => {
                let pieces = Pieces::load(tensors, sizes, bert, pieces)?;
                (Stage::Pieces(pieces), bert.activation, None)
            }
        };
        let (kind, heads) = (sizes.kind, sizes.heads);
        Ok(Self { kind, heads, input, layers, activation, norm, output, intent })
    }

    pub(crate) fn bytes(&self) -> usize {
        let layer = |l: &Layer| l.qkv.bytes() + l.merge.bytes() + l.inner.bytes() + l.outer.bytes();
        let input = match &self.input {
            Stage::Words(words) => words.bytes(),
            Stage::Pieces(_) => 0,
        };
        let outputs = self.output.bytes() + self.intent.as_ref().map_or(0, Affine::bytes);
        input + self.layers.iter().map(layer).sum::<usize>() + outputs
    }

    /// Reads several inputs, laid end to end, the first of which ends before `ends[0]` and so on.
    /// Leaves the logits of all words, [words, labels], in `scratch.logits`, and those of the intent
    /// of each input, [inputs, intents], in `scratch.intents`.
    ///
    /// An input is what is read of words, a row of the vocabulary and perhaps how it is written, or
    /// word pieces, of which the first of each word has the bit [`FIRST`].
    pub(crate) fn run(&self, ids: &[u32], ends: &[usize], scratch: &mut Scratch) {
        let d = self.output.inputs();
        match &self.input {
            Stage::Words(words) => words.embed(ids, ends, scratch),
            Stage::Pieces(pieces) => pieces.embed(ids, ends, d, scratch),
        }
        let rows = scratch.x.len() / d;
        let ends = std::mem::take(&mut scratch.ends);
        let inputs =
            || std::iter::once(&0).chain(&ends).zip(&ends).map(|(start, end)| *start..*end);
        for layer in &self.layers {
            let qkv = take(&mut scratch.qkv, rows * 3 * d);
            layer.qkv.apply(&scratch.x, rows, qkv, &mut scratch.kernel);
            let attended = take(&mut scratch.attended, rows * d);
            for input in inputs() {
                let qkv = &mut qkv[input.start * 3 * d..input.end * 3 * d];
                let attended = &mut attended[input.start * d..input.end * d];
                match self.kind {
                    ReviserKind::Transformer | ReviserKind::Bert => {
                        let room = &mut scratch.scores;
                        kernels::attention(qkv, attended, input.len(), self.heads, room);
                    }
                    ReviserKind::LinearTransformer => {
                        linear::attend(qkv, attended, self.heads, d, &mut scratch.scores);
                    }
                }
            }
            let merged = take(&mut scratch.joined, rows * d);
            layer.merge.apply(attended, rows, merged, &mut scratch.kernel);
            layer.norm1.add(&mut scratch.x, merged);

            let inner = take(&mut scratch.inner, rows * layer.inner.outputs());
            layer.inner.apply(&scratch.x, rows, inner, &mut scratch.kernel);
            match self.activation {
                Activation::Gelu => kernels::gelu(inner),
                Activation::GeluTanh => kernels::gelu_tanh(inner),
                Activation::Relu => kernels::relu(inner),
            }
            layer.outer.apply(inner, rows, merged, &mut scratch.kernel);
            layer.norm2.add(&mut scratch.x, merged);
        }
        if let Some(norm) = &self.norm {
            norm.apply(&mut scratch.x);
        }
        if let Some(intent) = &self.intent {
            let utterances = take(&mut scratch.joined, ends.len() * d);
            for (input, utterance) in inputs().zip(utterances.chunks_exact_mut(d)) {
                let rows = scratch.x[input.start * d..input.end * d].chunks_exact(d);
                match self.input {
                    Stage::Words(_) => mean(rows, utterance),
                    // `[CLS]` stands before the pieces.
                    Stage::Pieces(_) => rows.take(1).for_each(|row| utterance.copy_from_slice(row)),
                }
            }
            let intents = take(&mut scratch.intents, ends.len() * intent.outputs());
            intent.apply(utterances, ends.len(), intents, &mut scratch.kernel);
        }
        scratch.ends = ends;
        if let Stage::Pieces(_) = self.input {
            Pieces::gather(d, scratch);
        }
        let words = scratch.x.len() / d;
        let logits = take(&mut scratch.logits, words * self.output.outputs());
        self.output.apply(&scratch.x, words, logits, &mut scratch.kernel);
    }
}

/// The mean of some rows, which are summed in their order.
fn mean<'a>(rows: impl ExactSizeIterator<Item = &'a [f32]>, out: &mut [f32]) {
    let count = rows.len().max(1) as f32;
    out.fill(0.0);
    rows.for_each(|row| out.iter_mut().zip(row).for_each(|(out, value)| *out += value));
    out.iter_mut().for_each(|value| *value /= count);
}
