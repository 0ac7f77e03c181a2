//! The reviser (§3): a bidirectional encoder that recomputes every label. The second pass, and the
//! reference model.
//!
//! Word vector, projection to d, positions, layers, norm, logits, as in the crate `tapir`.

mod linear;
mod norm;
mod positions;
mod transformer;

use burn::tensor::{Tensor, activation::relu};
use tapir::{ReviserConfig, ReviserKind};

use crate::affine::Affine;
use crate::input::{Input, Words};
use crate::{Dropout, Leaves};
use norm::Norm;

pub(crate) struct Reviser {
    kind: ReviserKind,
    heads: usize,
    /// Does no word see a later one? Only when an action generator is trained.
    causal: bool,
    input: Input,
    layers: Vec<Layer>,
    norm: Norm,
    /// [d, labels]
    output: Affine,
}

/// Post-norm: x ← norm₁(x + attention(x)), x ← norm₂(x + feed-forward(x)).
struct Layer {
    /// [d, d] each
    query: Affine,
    key: Affine,
    value: Affine,
    merge: Affine,
    /// [d, f]
    inner: Affine,
    /// [f, d]
    outer: Affine,
    norm1: Norm,
    norm2: Norm,
}

/// Sentences of a batch: `length` rows each, the first so many of which are words.
pub(crate) struct Sentences {
    /// [sentences, 1]
    pub(crate) lengths: Tensor<2>,
    pub(crate) length: usize,
}

impl Reviser {
    pub(crate) fn new(leaves: &Leaves, sizes: &ReviserConfig, causal: bool) -> Self {
        let layer = |l: usize| {
            let name = |part: &str| format!("reviser.layers.{l}.{part}");
            let qkv = |piece| Affine::piece(leaves, &name("attention.qkv"), piece);
            Layer {
                query: qkv(0),
                key: qkv(1),
                value: qkv(2),
                merge: Affine::new(leaves, &name("attention.output")),
                inner: Affine::new(leaves, &name("feed_forward.inner")),
                outer: Affine::new(leaves, &name("feed_forward.outer")),
                norm1: Norm::new(leaves, &name("norm1"), sizes.norm()),
                norm2: Norm::new(leaves, &name("norm2"), sizes.norm()),
            }
        };
        Self {
            kind: sizes.kind,
            heads: sizes.heads,
            causal,
            input: Input::new(leaves, "reviser", true),
            layers: (0..sizes.layers).map(layer).collect(),
            norm: Norm::new(leaves, "reviser.norm", sizes.norm()),
            output: Affine::new(leaves, "reviser.output"),
        }
    }

    /// Logits of every row, [rows, labels], rows sentence-major: row b · length + t is word t of
    /// sentence b.
    pub(crate) fn forward(
        &self,
        words: &Words,
        sentences: &Sentences,
        dropout: &mut Dropout,
    ) -> Tensor<2> {
        let x = self.input.forward(words);
        let positions = positions::sinusoidal(sentences, x.dims()[1], dropout.device());
        let mut x = dropout.apply(x + positions);
        for layer in &self.layers {
            let qkv =
                [&layer.query, &layer.key, &layer.value].map(|affine| affine.forward(x.clone()));
            let attended = match self.kind {
                ReviserKind::Transformer | ReviserKind::Bert => {
                    transformer::attend(qkv, sentences, self.heads, dropout)
                }
                ReviserKind::LinearTransformer => {
                    linear::attend(qkv, sentences, self.heads, self.causal, dropout)
                }
            };
            let merged = dropout.apply(layer.merge.forward(attended));
            x = layer.norm1.forward(x + merged);
            let inner = dropout.apply(relu(layer.inner.forward(x.clone())));
            let outer = dropout.apply(layer.outer.forward(inner));
            x = layer.norm2.forward(x + outer);
        }
        self.output.forward(self.norm.forward(x))
    }
}
