//! The input stage: words to vectors, trained or pretrained, and a learned projection of them.

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor, TensorData};
use tapir::{Vocabulary, WordVectors};

use crate::Leaves;
use crate::affine::Affine;
use crate::weights::{TrainedRows, tensor};

/// The distinct words of a batch: few, so that each is looked up, projected and updated once.
pub(crate) struct Words {
    /// Rows of the trained table, ascending. Never empty: UNK is always there.
    pub(crate) trained: Vec<u32>,
    /// Vectors of the frozen rows, [frozen, embedding].
    frozen: Option<Tensor<2>>,
    /// For each word of the batch its place in trained rows and frozen ones, [rows].
    index: Tensor<1, Int>,
}

impl Words {
    /// Looks up `ids`, [rows].
    pub(crate) fn new(ids: &[u32], vocabulary: &Vocabulary, gain: f32, device: &Device) -> Self {
        let mut places: BTreeMap<u32, usize> = ids.iter().map(|id| (*id, 0)).collect();
        places.insert(Vocabulary::UNK, 0);
        places.values_mut().enumerate().for_each(|(place, slot)| *slot = place);
        let words = vocabulary.len() as u32;
        let trained: Vec<u32> = places.keys().copied().take_while(|id| *id < words).collect();
        let rows: Vec<u32> =
            places.keys().filter(|id| **id >= words).map(|id| id - words).collect();
        let frozen = vocabulary.vectors().filter(|_| !rows.is_empty());
        let frozen = frozen.map(|vectors| frozen_rows(vectors, &rows, gain, device));
        let index: Vec<i64> = ids.iter().map(|id| places[id] as i64).collect();
        let index = Tensor::from_data(TensorData::new(index, [ids.len()]), device);
        Self { trained, frozen, index }
    }

    /// The trained rows of this batch, [trained, embedding].
    pub(crate) fn rows(&self, table: &TrainedRows, device: &Device) -> Tensor<2> {
        let values = self.trained.iter().flat_map(|id| table.row(*id)).copied().collect();
        tensor(values, [self.trained.len(), table.width], device)
    }
}

fn frozen_rows(vectors: &WordVectors, rows: &[u32], gain: f32, device: &Device) -> Tensor<2> {
    let dim = vectors.dim();
    let mut values = vec![0.0; rows.len() * dim];
    for (row, out) in rows.iter().zip(values.chunks_exact_mut(dim)) {
        vectors.read(*row, out);
        out.iter_mut().for_each(|value| *value *= gain);
    }
    tensor(values, [rows.len(), dim], device)
}

/// One pass's input stage.
pub(crate) struct Input {
    /// The trained rows of this batch, [trained, embedding].
    rows: Tensor<2>,
    projection: Option<Affine>,
}

impl Input {
    /// `PASS.embedding` and, if there is one, `PASS.projection`.
    pub(crate) fn new(leaves: &Leaves, pass: &str, projection: bool) -> Self {
        let projection = projection.then(|| Affine::new(leaves, &format!("{pass}.projection")));
        Self { rows: leaves.get(&format!("{pass}.embedding")), projection }
    }

    /// x of every word, [rows, size].
    pub(crate) fn forward(&self, words: &Words) -> Tensor<2> {
        let mut x = self.rows.clone();
        if let Some(frozen) = &words.frozen {
            x = Tensor::cat(vec![x, frozen.clone()], 0);
        }
        if let Some(projection) = &self.projection {
            x = projection.forward(x);
        }
        x.select(0, words.index.clone())
    }
}
