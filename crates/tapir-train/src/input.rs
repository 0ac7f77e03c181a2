//! The input stage: words to vectors, trained or pretrained, and a learned projection of them.

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor, TensorData};
use tapir::{Affixes, Config, Vocabulary, WordVectors};
use tapir_data::Batch;

use crate::affine::Affine;
use crate::weights::{AFFIXES, POSITIONS, TrainedRows, tensor};
use crate::{Leaves, Lexicon, Objective, Spellings};

/// The distinct words of a batch: few, so that each is looked up, projected and updated once.
pub(crate) struct Words {
    /// Rows of the trained table, ascending. Never empty: UNK is always there, or `[CLS]`.
    trained: Vec<u32>,
    /// Vectors of the frozen rows, [frozen, embedding].
    frozen: Option<Tensor<2>>,
    /// Means of the pieces of words that are read by their spelling, [spelled, d]. Never empty where
    /// there are spellings, so that every batch has a gradient of what reads them.
    spelled: Option<Tensor<2>>,
    /// How words are written, where a pass reads that.
    written: Option<Written>,
    /// For each word of the batch its place in trained rows, frozen and spelled ones, or among those
    /// of them that differ in how they are written, [rows].
    index: Tensor<1, Int>,
    /// Where they are word pieces: their positions, ascending, and that of each, [rows].
    positions: Option<(Vec<u32>, Tensor<1, Int>)>,
}

/// The distinct words of a batch by how they are written: a row may stand for several, as UNK does.
struct Written {
    /// For each its place in trained rows, frozen and spelled ones, [words].
    places: Tensor<1, Int>,
    /// Rows of the table of affixes, ascending. Never empty.
    trained: Vec<u32>,
    /// How often each word has each of them, [words, trained].
    counts: Tensor<2>,
}

impl Words {
    /// Looks up what a batch holds: word pieces, where it is for a reviser that reads them.
    pub(crate) fn of(
        batch: &Batch,
        lexicon: Lexicon,
        config: &Config,
        objective: Objective,
        device: &Device,
    ) -> Self {
        if objective == Objective::Reviser && config.reads_pieces() {
            Self::of_pieces(&batch.ids, batch.length, device)
        } else {
            let (processor, reviser) = (&config.processor, &config.reviser);
            let affixes = match objective {
                Objective::Reviser | Objective::Generator => {
                    reviser.as_ref().and_then(|r| r.affixes)
                }
                Objective::FirstPass | Objective::Policy => {
                    processor.as_ref().and_then(|p| p.affixes)
                }
            };
            Self::new(batch, lexicon, config.vector_gain, affixes, device)
        }
    }

    /// Looks up words, and how they are written in a table of `affixes` rows if there is one.
    fn new(
        batch: &Batch,
        lexicon: Lexicon,
        gain: f32,
        affixes: Option<usize>,
        device: &Device,
    ) -> Self {
        let ids = &batch.ids;
        let Lexicon { vocabulary, spellings, .. } = lexicon;
        let mut places: BTreeMap<u32, usize> = ids.iter().map(|id| (*id, 0)).collect();
        places.insert(Vocabulary::UNK, 0);
        if let Some(spellings) = spellings {
            places.insert(spellings.first(), 0);
        }
        places.values_mut().enumerate().for_each(|(place, slot)| *slot = place);
        let words = vocabulary.len() as u32;
        let trained: Vec<u32> = places.keys().copied().take_while(|id| *id < words).collect();
        let end = spellings.map_or(u32::MAX, Spellings::first);
        let rows: Vec<u32> = places.range(words..end).map(|(id, _)| id - words).collect();
        let frozen = vocabulary.vectors().filter(|_| !rows.is_empty());
        let frozen = frozen.map(|vectors| frozen_rows(vectors, &rows, gain, device));
        let spelled = spellings.map(|spellings| {
            let ids: Vec<u32> = places.range(end..).map(|(id, _)| *id).collect();
            let means = ids.iter().flat_map(|id| spellings.mean(*id)).copied().collect();
            tensor(means, [ids.len(), spellings.width()], device)
        });
        let places = ids.iter().map(|id| places[id]);
        let Some(rows) = affixes else {
            let index = integers(places, device);
            return Self { trained, frozen, spelled, written: None, index, positions: None };
        };
        let (written, index) =
            Written::new(places.zip(batch.affixes.iter().copied()), rows, device);
        Self { trained, frozen, spelled, written: Some(written), index, positions: None }
    }

    /// Looks up word pieces, [sentences × length].
    fn of_pieces(ids: &[u32], length: usize, device: &Device) -> Self {
        let mut places: BTreeMap<u32, usize> = ids.iter().map(|id| (*id, 0)).collect();
        places.values_mut().enumerate().for_each(|(place, slot)| *slot = place);
        let index = integers(ids.iter().map(|id| places[id]), device);
        let positions = integers((0..ids.len()).map(|row| row % length), device);
        let positions = Some(((0..length as u32).collect(), positions));
        let trained = places.into_keys().collect();
        Self { trained, frozen: None, spelled: None, written: None, index, positions }
    }

    /// Are they word pieces?
    pub(crate) fn are_pieces(&self) -> bool {
        self.positions.is_some()
    }

    /// Which rows of a table this batch trains.
    pub(crate) fn trained(&self, table: &str) -> &[u32] {
        match (&self.positions, &self.written) {
            (Some((positions, _)), _) if table == POSITIONS => positions,
            (_, Some(written)) if table.ends_with(AFFIXES) => &written.trained,
            _ => &self.trained,
        }
    }

    /// These rows of a table, [trained, embedding].
    pub(crate) fn rows(&self, name: &str, table: &TrainedRows, device: &Device) -> Tensor<2> {
        let ids = self.trained(name);
        let values = ids.iter().flat_map(|id| table.row(*id)).copied().collect();
        tensor(values, [ids.len(), table.width], device)
    }

    /// From a row for each distinct word to one for each word of the batch.
    pub(crate) fn select(&self, distinct: Tensor<2>) -> Tensor<2> {
        distinct.select(0, self.index.clone())
    }

    /// From a row for each position to one for each piece of the batch.
    pub(crate) fn select_positions(&self, distinct: Tensor<2>) -> Tensor<2> {
        match &self.positions {
            Some((_, index)) => distinct.select(0, index.clone()),
            None => distinct,
        }
    }
}

impl Written {
    /// Of words by their place and how they are written; also says for each which of them it is.
    fn new(
        words: impl Iterator<Item = (usize, Affixes)> + Clone,
        rows: usize,
        device: &Device,
    ) -> (Self, Tensor<1, Int>) {
        let mut distinct: BTreeMap<(usize, Affixes), usize> =
            words.clone().map(|word| (word, 0)).collect();
        distinct.values_mut().enumerate().for_each(|(place, slot)| *slot = place);
        let used = distinct.keys().flat_map(|(_, affixes)| Affixes::rows(affixes.hashes(), rows));
        // One at least, so that every batch has a gradient of the table.
        let mut columns: BTreeMap<usize, usize> = used.chain([0]).map(|row| (row, 0)).collect();
        columns.values_mut().enumerate().for_each(|(column, slot)| *slot = column);
        let mut counts = vec![0.0; distinct.len() * columns.len()];
        for ((_, affixes), counts) in distinct.keys().zip(counts.chunks_exact_mut(columns.len())) {
            Affixes::rows(affixes.hashes(), rows).for_each(|row| counts[columns[&row]] += 1.0);
        }
        let counts = tensor(counts, [distinct.len(), columns.len()], device);
        let places = integers(distinct.keys().map(|(place, _)| *place), device);
        let trained = columns.into_keys().map(|row| row as u32).collect();
        (Self { places, trained, counts }, integers(words.map(|word| distinct[&word]), device))
    }
}

fn integers(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.map(|value| value as i64).collect();
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
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
    /// From means of pieces to vectors of words.
    spelling: Option<Affine>,
    /// The rows of this batch of how words are written, [trained, embedding].
    affixes: Option<Tensor<2>>,
}

impl Input {
    /// `PASS.embedding` and, if there are any, `PASS.projection`, `PASS.spelling` and
    /// `PASS.affixes`.
    pub(crate) fn new(
        leaves: &Leaves,
        pass: &str,
        projection: bool,
        spelling: bool,
        affixes: bool,
    ) -> Self {
        let affine = |part: &str| Affine::new(leaves, &format!("{pass}.{part}"));
        Self {
            affixes: affixes.then(|| leaves.get(&format!("{pass}{AFFIXES}"))),
            rows: leaves.get(&format!("{pass}.embedding")),
            projection: projection.then(|| affine("projection")),
            spelling: spelling.then(|| affine("spelling")),
        }
    }

    /// x of every word, [rows, size].
    pub(crate) fn forward(&self, words: &Words) -> Tensor<2> {
        let mut x = self.rows.clone();
        if let Some(frozen) = &words.frozen {
            x = Tensor::cat(vec![x, frozen.clone()], 0);
        }
        if let (Some(spelling), Some(spelled)) = (&self.spelling, &words.spelled) {
            x = Tensor::cat(vec![x, spelling.forward(spelled.clone())], 0);
        }
        if let (Some(affixes), Some(written)) = (&self.affixes, &words.written) {
            let written_as = written.counts.clone().matmul(affixes.clone());
            x = x.select(0, written.places.clone()) + written_as;
        }
        if let Some(projection) = &self.projection {
            x = projection.forward(x);
        }
        words.select(x)
    }
}
