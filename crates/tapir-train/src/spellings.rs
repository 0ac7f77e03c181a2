//! How words are written, for a first pass that reads the ones it does not know by their pieces.
//!
//! The reviser is trained before the first pass and stays as it is, so the mean of a word's pieces
//! is a constant: one per word of the corpus, computed once.

use std::collections::HashMap;

use tapir::{PieceRules, Vocabulary, WordPieces};
use tapir_data::{Example, Text};

use crate::TrainedRows;

/// Words by their spelling. Each has an id behind the rows of the vocabulary, so that a batch can
/// hold words by their row and words by their spelling.
pub struct Spellings {
    /// The id of the first.
    first: u32,
    ids: HashMap<Text, u32>,
    /// The spelling of a word that has a row, by that row.
    of_rows: HashMap<u32, u32>,
    /// Means of pieces, [words, d].
    means: TrainedRows,
}

impl Spellings {
    /// Those of all words of some sentences. `table` are the rows of the reviser's pieces, `most` is
    /// how many pieces a word may have.
    pub(crate) fn new(
        examples: &[Example],
        vocabulary: &Vocabulary,
        (pieces, rules, most): (&WordPieces, &PieceRules, usize),
        table: &TrainedRows,
    ) -> Self {
        let first = vocabulary.ids() as u32;
        let means = TrainedRows { width: table.width, values: Vec::new() };
        let mut spellings = Self { first, ids: HashMap::new(), of_rows: HashMap::new(), means };
        for word in examples.iter().flat_map(|example| &example.words) {
            if spellings.ids.contains_key(word) {
                continue;
            }
            let id = first + spellings.ids.len() as u32;
            spellings.ids.insert(word.clone(), id);
            let row = vocabulary.id(word);
            if row != Vocabulary::UNK {
                spellings.of_rows.insert(row, id);
            }
            let mut word = pieces.split(word, rules);
            word.truncate(most);
            let start = spellings.means.values.len();
            spellings.means.values.resize(start + table.width, 0.0);
            let mean = &mut spellings.means.values[start..];
            for piece in &word {
                mean.iter_mut().zip(table.row(*piece)).for_each(|(mean, value)| *mean += value);
            }
            mean.iter_mut().for_each(|value| *value /= word.len() as f32);
        }
        spellings
    }

    /// Gives the unknown words of an example the ids of their spellings, as the engine reads them.
    pub(crate) fn spell(&self, example: &mut Example) {
        for (id, word) in example.ids.iter_mut().zip(&example.words) {
            if *id == Vocabulary::UNK {
                *id = self.ids.get(word).copied().unwrap_or(*id);
            }
        }
    }

    /// What stands for a word of this row where it is taken for unknown: its spelling, or UNK.
    pub(crate) fn unknown(&self, row: u32) -> u32 {
        if row >= self.first {
            return row;
        }
        self.of_rows.get(&row).copied().unwrap_or(Vocabulary::UNK)
    }

    /// The id of the first: what is below is a row of the vocabulary.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Size of a mean.
    pub(crate) fn width(&self) -> usize {
        self.means.width
    }

    /// The mean of the pieces of a word, by its id.
    pub(crate) fn mean(&self, id: u32) -> &[f32] {
        self.means.row(id - self.first)
    }
}
