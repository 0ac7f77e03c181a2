//! Softmax attention of the Transformer reviser.

use burn::tensor::Tensor;

use super::Sentences;
use crate::Dropout;
use crate::ops::{self, AttentionKind};
use crate::weights::tensor;

/// Queries, keys and values [rows, d] to attended [rows, d]; dropout on the attention weights.
pub(super) fn attend(
    qkv: [Tensor<2>; 3],
    sentences: &Sentences,
    heads: usize,
    dropout: &mut Dropout,
) -> Tensor<2> {
    let rows = qkv[0].dims()[0] * heads;
    let keep = if dropout.is_active() {
        dropout.mask([rows, sentences.length])
    } else {
        tensor(vec![1.0], [1, 1], dropout.device())
    };
    ops::attention(qkv, sentences.lengths.clone(), keep, heads, AttentionKind::Softmax)
}
