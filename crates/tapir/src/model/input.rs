//! The input stage: word ids to vectors, trained or pretrained, and a learned projection of them.

use std::sync::Arc;

use super::Affine;
use crate::kernels;
use crate::tensors::{RowTable, Tensors};
use crate::vectors::WordVectors;
use crate::{Config, Result, Vocabulary};

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
}

impl Input {
    /// Reads `PASS.embedding` and, for a projection to `projection` values, `PASS.projection`.
    pub(crate) fn load(
        tensors: &Tensors,
        pass: &str,
        config: &Config,
        vocabulary: &Vocabulary,
        projection: Option<usize>,
    ) -> Result<Self> {
        let embedding = config.embedding_dim;
        let words = vocabulary.len();
        let table = tensors.table(&format!("{pass}.embedding"), words, embedding)?;
        let projection = projection
            .map(|size| Affine::load(tensors, &format!("{pass}.projection"), size, embedding))
            .transpose()?;
        let vectors = vocabulary.vectors().cloned();
        Ok(Self { table, words, vectors, gain: config.vector_gain, embedding, projection })
    }

    /// Size of x.
    pub(crate) fn size(&self) -> usize {
        self.projection.as_ref().map_or(self.embedding, Affine::outputs)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.projection.as_ref().map_or(0, Affine::bytes)
    }

    /// ids: [rows] to x: [rows, size].
    pub(crate) fn embed(
        &self,
        ids: &[u32],
        x: &mut Vec<f32>,
        work: &mut Vec<f32>,
        scratch: &mut kernels::Scratch,
    ) {
        let Some(projection) = &self.projection else {
            return self.rows(ids, x);
        };
        self.rows(ids, work);
        x.resize(ids.len() * projection.outputs(), 0.0);
        projection.apply(work, ids.len(), x, scratch);
    }

    fn rows(&self, ids: &[u32], out: &mut Vec<f32>) {
        out.resize(ids.len() * self.embedding, 0.0);
        for (id, out) in ids.iter().zip(out.chunks_exact_mut(self.embedding)) {
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
