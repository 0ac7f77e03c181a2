//! The reviser (§3): a bidirectional encoder that recomputes every label of the window. The second
//! pass.
//!
//! Word vector, projection to d, positions, layers, norm, logits. The parts can be exchanged one by
//! one: the input stage, the positions, the attention and the normalisation each have a file.

mod linear;
mod norm;
mod positions;

use norm::Norm;
use positions::Positions;

use super::scratch::{Scratch, take};
use super::{Affine, Input};
use crate::kernels;
use crate::tensors::Tensors;
use crate::{Config, Result, ReviserConfig, ReviserKind, Vocabulary};

pub(crate) struct Reviser {
    kind: ReviserKind,
    heads: usize,
    input: Input,
    positions: Positions,
    layers: Vec<Layer>,
    norm: Norm,
    /// [labels, d]
    output: Affine,
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
    pub(crate) fn load(
        tensors: &Tensors,
        config: &Config,
        sizes: &ReviserConfig,
        vocabulary: &Vocabulary,
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
                norm1: Norm::load(tensors, &name("norm1"), d, sizes.norm())?,
                norm2: Norm::load(tensors, &name("norm2"), d, sizes.norm())?,
            })
        };
        Ok(Self {
            kind: sizes.kind,
            heads: sizes.heads,
            input: Input::load(tensors, "reviser", config, vocabulary, Some(d))?,
            layers: (0..sizes.layers).map(layer).collect::<Result<_>>()?,
            norm: Norm::load(tensors, "reviser.norm", d, sizes.norm())?,
            output: Affine::load(tensors, "reviser.output", labels, d)?,
            // Last, when the file has shown that it holds matrices of this width.
            positions: Positions::sinusoidal(config.max_length, d),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let layer = |l: &Layer| l.qkv.bytes() + l.merge.bytes() + l.inner.bytes() + l.outer.bytes();
        self.input.bytes() + self.layers.iter().map(layer).sum::<usize>() + self.output.bytes()
    }

    /// Reads several inputs, laid end to end, the first of which ends before `ends[0]` and so on.
    /// Leaves the logits of all words, [words, labels], in `scratch.logits`.
    pub(crate) fn run(&self, ids: &[u32], ends: &[usize], scratch: &mut Scratch) {
        let (rows, d) = (ids.len(), self.input.size());
        let inputs = || std::iter::once(&0).chain(ends).zip(ends).map(|(start, end)| *start..*end);
        self.input.embed(ids, &mut scratch.x, &mut scratch.joined, &mut scratch.kernel);
        for input in inputs() {
            self.positions.add(&mut scratch.x[input.start * d..input.end * d]);
        }
        for layer in &self.layers {
            let qkv = take(&mut scratch.qkv, rows * 3 * d);
            layer.qkv.apply(&scratch.x, rows, qkv, &mut scratch.kernel);
            let attended = take(&mut scratch.attended, rows * d);
            for input in inputs() {
                let qkv = &mut qkv[input.start * 3 * d..input.end * 3 * d];
                let attended = &mut attended[input.start * d..input.end * d];
                match self.kind {
                    ReviserKind::Transformer => {
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
            kernels::relu(inner);
            layer.outer.apply(inner, rows, merged, &mut scratch.kernel);
            layer.norm2.add(&mut scratch.x, merged);
        }
        self.norm.apply(&mut scratch.x);
        let labels = self.output.outputs();
        self.output.apply(
            &scratch.x,
            rows,
            take(&mut scratch.logits, rows * labels),
            &mut scratch.kernel,
        );
    }
}
