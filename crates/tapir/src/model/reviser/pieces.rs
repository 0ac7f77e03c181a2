//! What a pretrained reviser reads: word pieces between `[CLS]` and `[SEP]`, each with its learned
//! position. A word's label is read at its first piece.

use super::norm::Norm;
use crate::model::scratch::Scratch;
use crate::tensors::{RowTable, Tensors};
use crate::{BertConfig, Result, ReviserConfig, WordPieces};

/// In the input of a reviser, the first piece of each word has this bit. No id reaches it.
pub(crate) const FIRST: u32 = 1 << 31;

pub(super) struct Pieces {
    /// [pieces, d]
    table: RowTable,
    /// `[d]`: all pieces are of the first token type.
    token_type: Vec<f32>,
    /// [positions, d]
    positions: Vec<f32>,
    norm: Norm,
    /// `[CLS]` and `[SEP]`
    ends: [u32; 2],
}

impl Pieces {
    pub(super) fn load(
        tensors: &Tensors,
        sizes: &ReviserConfig,
        bert: &BertConfig,
        pieces: &WordPieces,
    ) -> Result<Self> {
        let d = sizes.hidden;
        let table = tensors.table("reviser.pieces", pieces.len(), d)?;
        let token_type = tensors.values("reviser.token_type", &[d])?;
        let positions = tensors.values("reviser.positions", &[bert.positions, d])?;
        let norm = Norm::load(tensors, "reviser.embedding_norm", sizes)?;
        Ok(Self { table, token_type, positions, norm, ends: pieces.ends() })
    }

    /// A row for each piece, `[CLS]` and `[SEP]`: x, [rows, d], in `scratch.x`, where each input
    /// ends in `scratch.ends`, and which rows are first pieces of words in `scratch.firsts`.
    pub(super) fn embed(&self, pieces: &[u32], ends: &[usize], d: usize, scratch: &mut Scratch) {
        let Scratch { x, ends: row_ends, firsts, .. } = scratch;
        x.resize((pieces.len() + BertConfig::ENDS * ends.len()) * d, 0.0);
        row_ends.clear();
        firsts.clear();
        let mut rows = x.chunks_exact_mut(d).enumerate();
        let mut start = 0;
        for end in ends {
            let [cls, sep] = self.ends;
            let input = pieces[start..*end].iter().copied();
            let input = std::iter::once(cls).chain(input).chain([sep]);
            for ((piece, position), (index, row)) in
                input.zip(self.positions.chunks_exact(d)).zip(&mut rows)
            {
                if piece & FIRST != 0 {
                    firsts.push(index);
                }
                self.table.read((piece & !FIRST) as usize, row);
                // In the order of `transformers`: another one rounds otherwise, and large weights
                // make much of it.
                for ((x, kind), position) in row.iter_mut().zip(&self.token_type).zip(position) {
                    *x = (*x + kind) + position;
                }
            }
            start = *end;
            row_ends.push(start + BertConfig::ENDS * (row_ends.len() + 1));
        }
        self.norm.apply(x);
    }

    /// Moves the rows of first pieces to the front of `scratch.x`: a row for each word.
    pub(super) fn gather(d: usize, scratch: &mut Scratch) {
        let Scratch { x, firsts, .. } = scratch;
        for (word, row) in firsts.iter().enumerate() {
            x.copy_within(row * d..(row + 1) * d, word * d);
        }
        x.truncate(firsts.len() * d);
    }
}
