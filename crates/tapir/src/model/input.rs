//! The input stage: word ids to vectors, trained or pretrained, and a learned projection of them.

use std::sync::Arc;

use super::scratch::take;
use super::{Affine, FIRST, word_width};
use crate::kernels;
use crate::tensors::{RowTable, Tensors};
use crate::vectors::WordVectors;
use crate::{Affixes, Config, Result, Vocabulary};

/// Each of the two passes has an input stage of its own.
pub(crate) struct Input {
    /// Trained rows, [words, embedding].
    table: RowTable,
    words: usize,
    /// Pretrained rows, behind the trained ones.
    vectors: Option<Arc<WordVectors>>,
    gain: f32,
    embedding: usize,
    projection: Option<Affine>,
    spelling: Option<Box<Spelling>>,
    /// [rows, embedding], of how words are written, and how many rows there are.
    affixes: Option<(RowTable, usize)>,
    /// How many values stand for a word in what is given.
    width: usize,
}

/// Vectors of words that have no row, from how they are written.
struct Spelling {
    /// The reviser's word pieces, [pieces, d].
    pieces: RowTable,
    /// [embedding, d], of the mean of a word's pieces.
    affine: Affine,
}

/// Words as the first pass reads them: a row of the vocabulary each, how it is written where a pass
/// of the model reads that, and their pieces where unknown words are read by their spelling.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// Row and hashes, end to end.
    pub(crate) ids: &'a [u32],
    /// Those of all words, end to end; empty where nobody reads them.
    pub(crate) pieces: &'a [u32],
    /// Where those of each word end.
    pub(crate) ends: &'a [usize],
}

impl<'a> Given<'a> {
    /// Words by their rows alone.
    pub(crate) fn rows(ids: &'a [u32]) -> Self {
        Self { ids, pieces: &[], ends: &[] }
    }
}

impl Input {
    /// Reads `PASS.embedding`, for a projection to `projection` values `PASS.projection`, and for
    /// how words are written `PASS.affixes`, of so many rows.
    pub(crate) fn load(
        tensors: &Tensors,
        pass: &str,
        config: &Config,
        vocabulary: &Vocabulary,
        projection: Option<usize>,
        affixes: Option<usize>,
    ) -> Result<Self> {
        let width = word_width(config);
        let embedding = config.embedding_dim;
        let words = vocabulary.len();
        let table = tensors.table(&format!("{pass}.embedding"), words, embedding)?;
        let projection = projection
            .map(|size| Affine::load(tensors, &format!("{pass}.projection"), size, embedding))
            .transpose()?;
        let affixes = affixes
            .map(|rows| Ok((tensors.table(&format!("{pass}.affixes"), rows, embedding)?, rows)));
        let (affixes, spelling) = (affixes.transpose()?, None);
        let vectors = vocabulary.vectors().cloned();
        let gain = config.vector_gain;
        Ok(Self { table, words, vectors, gain, embedding, projection, spelling, affixes, width })
    }

    /// Reads `PASS.spelling`, too, which makes vectors of the reviser's `pieces` of size `d`.
    pub(crate) fn with_spelling(
        mut self,
        tensors: &Tensors,
        pass: &str,
        pieces: usize,
        d: usize,
    ) -> Result<Self> {
        let pieces = tensors.table("reviser.pieces", pieces, d)?;
        let affine = Affine::load(tensors, &format!("{pass}.spelling"), self.embedding, d)?;
        self.spelling = Some(Box::new(Spelling { pieces, affine }));
        Ok(self)
    }

    /// Does it read the pieces of unknown words?
    pub(crate) fn reads_pieces(&self) -> bool {
        self.spelling.is_some()
    }

    /// Size of x.
    pub(crate) fn size(&self) -> usize {
        self.projection.as_ref().map_or(self.embedding, Affine::outputs)
    }

    /// How many values stand for a word.
    pub(crate) fn word_width(&self) -> usize {
        self.width
    }

    pub(crate) fn bytes(&self) -> usize {
        let spelling = self.spelling.as_ref().map(|spelling| &spelling.affine);
        self.projection.iter().chain(spelling).map(Affine::bytes).sum()
    }

    /// Words to x: [rows, size].
    pub(crate) fn embed(
        &self,
        words: Given,
        x: &mut Vec<f32>,
        work: &mut Vec<f32>,
        scratch: &mut kernels::Scratch,
    ) {
        let rows = words.ids.len() / self.width;
        // Also the room of means, which are read before the projection writes there.
        let (vectors, other) = if self.projection.is_some() { (work, x) } else { (x, work) };
        self.rows(words.ids, vectors);
        if let Some(spelling) = &self.spelling {
            for (word, out) in vectors.chunks_exact_mut(self.embedding).enumerate() {
                let start = word.checked_sub(1).map_or(0, |before| words.ends[before]);
                let pieces = &words.pieces[start..words.ends[word]];
                if words.ids[word * self.width] == Vocabulary::UNK && !pieces.is_empty() {
                    spelling.read(pieces, out, other, scratch);
                }
            }
        }
        if let Some((table, count)) = &self.affixes {
            let affix = take(other, self.embedding);
            let written = words.ids.chunks_exact(self.width).map(|word| &word[1..]);
            for (hashes, out) in written.zip(vectors.chunks_exact_mut(self.embedding)) {
                for row in Affixes::rows(hashes, *count) {
                    table.read(row, affix);
                    out.iter_mut().zip(&*affix).for_each(|(out, value)| *out += value);
                }
            }
        }
        if let Some(projection) = &self.projection {
            other.resize(rows * projection.outputs(), 0.0);
            projection.apply(vectors, rows, other, scratch);
        }
    }

    fn rows(&self, words: &[u32], out: &mut Vec<f32>) {
        out.resize(words.len() / self.width * self.embedding, 0.0);
        let ids = words.iter().step_by(self.width);
        for (id, out) in ids.zip(out.chunks_exact_mut(self.embedding)) {
            let id = *id as usize;
            match (&self.vectors, id.checked_sub(self.words)) {
                (Some(vectors), Some(row)) => {
                    vectors.read(row as u32, out);
                    out.iter_mut().for_each(|value| *value *= self.gain);
                }
                _ => self.table.read(id, out),
            }
        }
    }
}

impl Spelling {
    /// The vector of a word of these pieces, [embedding]. `work` holds their mean, and a piece.
    fn read(
        &self,
        pieces: &[u32],
        out: &mut [f32],
        work: &mut Vec<f32>,
        scratch: &mut kernels::Scratch,
    ) {
        let d = self.affine.inputs();
        work.clear();
        work.resize(2 * d, 0.0);
        let (mean, piece) = work.split_at_mut(d);
        for id in pieces {
            self.pieces.read((id & !FIRST) as usize, piece);
            mean.iter_mut().zip(&*piece).for_each(|(mean, value)| *mean += value);
        }
        let count = pieces.len() as f32;
        mean.iter_mut().for_each(|value| *value /= count);
        self.affine.apply(mean, 1, out, scratch);
    }
}
