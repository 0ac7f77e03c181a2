//! Linear attention of the Linear Transformer reviser and of the action generator (appendix, eqs.
//! 14 and 15).

use burn::tensor::Tensor;

use super::Sentences;
use crate::Dropout;
use crate::ops::{self, AttentionKind};
use crate::weights::tensor;

/// Queries, keys and values [rows, d] to attended [rows, d]. Its weights are never formed by the
/// original: no dropout.
pub(super) fn attend(
    qkv: [Tensor<2>; 3],
    sentences: &Sentences,
    heads: usize,
    causal: bool,
    dropout: &Dropout,
) -> Tensor<2> {
    let keep = tensor(vec![1.0], [1, 1], dropout.device());
    let kind = if causal { AttentionKind::Causal } else { AttentionKind::Linear };
    ops::attention(qkv, sentences.lengths.clone(), keep, heads, kind)
}
