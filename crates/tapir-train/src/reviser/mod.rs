//! The reviser (§3): a bidirectional encoder that recomputes every label. The second pass, and the
//! reference model.
//!
//! Input stage, layers, norm, logits, as in the crate `tapir`.

mod linear;
mod norm;
mod pieces;
mod positions;
mod transformer;

use burn::tensor::{Int, Tensor, TensorData, activation::relu};
use tapir::{Activation, ReviserConfig, ReviserKind};

use crate::affine::Affine;
use crate::input::{Input, Words};
use crate::weights::{tensor, values};
use crate::{Dropout, Leaves, ops};
use norm::Norm;
use pieces::Pieces;

pub(crate) struct Reviser {
    kind: ReviserKind,
    heads: usize,
    /// Does no word see a later one? Only when an action generator is trained.
    causal: bool,
    input: Stage,
    layers: Vec<Layer>,
    activation: Activation,
    /// None where the last layer's own is the last.
    norm: Option<Norm>,
    /// [d, labels]
    output: Affine,
    /// [d, intents], where intents are trained: of the mean of all words, or of `[CLS]`
    intent: Option<Affine>,
}

/// What the reviser says of a batch.
pub(crate) struct Revised {
    /// Logits of every row, [rows, labels], rows sentence-major: row b · length + t is word or piece
    /// t of sentence b.
    pub(crate) logits: Tensor<2>,
    /// Logits of every sentence, [sentences, intents].
    pub(crate) intents: Option<Tensor<2>>,
}

/// What it reads, and how.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Stage {
    Words(Input),
    Pieces(Pieces),
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

impl Sentences {
    /// The mean of the words of each sentence, [sentences, d], of rows x, [rows, d].
    fn means(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, _] = x.dims();
        let (length, lengths) = (self.length, values(&self.lengths));
        let mut shares = vec![0.0; lengths.len() * rows];
        for (b, words) in lengths.iter().enumerate() {
            shares[b * rows + b * length..][..*words as usize].fill(1.0 / words);
        }
        let shares = tensor(shares, [lengths.len(), rows], &x.device());
        shares.matmul(x)
    }

    /// The first row of each sentence, [sentences, d].
    fn firsts(&self, x: Tensor<2>) -> Tensor<2> {
        let sentences = self.lengths.dims()[0];
        let firsts: Vec<i64> = (0..sentences).map(|b| (b * self.length) as i64).collect();
        let firsts = Tensor::<1, Int>::from_data(TensorData::new(firsts, [sentences]), &x.device());
        x.select(0, firsts)
    }
}

impl Reviser {
    /// With a head for intents, where they are trained.
    pub(crate) fn new(leaves: &Leaves, sizes: &ReviserConfig, intents: bool, causal: bool) -> Self {
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
                norm1: Norm::new(leaves, &name("norm1"), sizes),
                norm2: Norm::new(leaves, &name("norm2"), sizes),
            }
        };
        let (input, activation, norm) = match &sizes.bert {
            None => {
                let norm = Norm::new(leaves, "reviser.norm", sizes);
                (
                    Stage::Words(Input::new(
                        leaves,
                        "reviser",
                        true,
                        false,
                        sizes.affixes.is_some(),
                    )),
                    Activation::Relu,
                    Some(norm),
                )
            }
            Some(bert) => (Stage::Pieces(Pieces::new(leaves, sizes)), bert.activation, None),
        };
        Self {
            kind: sizes.kind,
            heads: sizes.heads,
            causal,
            input,
            layers: (0..sizes.layers).map(layer).collect(),
            activation,
            norm,
            output: Affine::new(leaves, "reviser.output"),
            intent: intents.then(|| Affine::new(leaves, "reviser.intent")),
        }
    }

    pub(crate) fn forward(
        &self,
        words: &Words,
        sentences: &Sentences,
        dropout: &mut Dropout,
    ) -> Revised {
        let mut x = match &self.input {
            Stage::Words(input) => {
                let x = input.forward(words);
                let positions = positions::sinusoidal(sentences, x.dims()[1], dropout.device());
                dropout.apply(x + positions)
            }
            Stage::Pieces(pieces) => pieces.forward(words, dropout),
        };
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
            let inner = layer.inner.forward(x.clone());
            let inner = match self.activation {
                // The authors drop values here, too; BERT does not.
                Activation::Relu if self.norm.is_some() => dropout.apply(relu(inner)),
                Activation::Relu => relu(inner),
                Activation::Gelu => ops::gelu(inner, false),
                Activation::GeluTanh => ops::gelu(inner, true),
            };
            let outer = dropout.apply(layer.outer.forward(inner));
            x = layer.norm2.forward(x + outer);
        }
        let x = match &self.norm {
            Some(norm) => norm.forward(x),
            None => dropout.apply(x),
        };
        let intents = self.intent.as_ref().map(|intent| {
            intent.forward(match &self.input {
                Stage::Words(_) => sentences.means(x.clone()),
                Stage::Pieces(_) => sentences.firsts(x.clone()),
            })
        });
        Revised { logits: self.output.forward(x), intents }
    }
}
