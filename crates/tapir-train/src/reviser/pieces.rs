//! What a pretrained reviser reads: word pieces between `[CLS]` and `[SEP]`, each with its learned
//! position.

use burn::tensor::Tensor;
use tapir::ReviserConfig;

use super::norm::Norm;
use crate::input::Words;
use crate::{Dropout, Leaves};

pub(super) struct Pieces {
    /// The pieces of this batch, [distinct, d].
    rows: Tensor<2>,
    /// Its positions, [length, d].
    positions: Tensor<2>,
    /// All pieces are of the first token type, [1, d].
    token_type: Tensor<2>,
    norm: Norm,
}

impl Pieces {
    pub(super) fn new(leaves: &Leaves, sizes: &ReviserConfig) -> Self {
        Self {
            rows: leaves.get("reviser.pieces"),
            positions: leaves.get("reviser.positions"),
            token_type: leaves.get("reviser.token_type"),
            norm: Norm::new(leaves, "reviser.embedding_norm", sizes),
        }
    }

    /// x of every piece, [rows, d].
    pub(super) fn forward(&self, words: &Words, dropout: &mut Dropout) -> Tensor<2> {
        let positions = self.positions.clone() + self.token_type.clone();
        let x = words.select(self.rows.clone()) + words.select_positions(positions);
        dropout.apply(self.norm.forward(x))
    }
}
