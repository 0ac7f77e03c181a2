//! A table of word vectors in memory, its rows quantised as they come in.

use std::collections::HashSet;

use tapir::WordVectors;
use tapir::kernels::LARGEST_SCALE;
use tapir::vectors::LARGEST_ROWS;

use crate::{Error, Result, Text};

/// Words, each with the number of its row, and rows of int8 with a scale each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VectorTable {
    pub(super) dim: usize,
    pub(super) rows: Vec<i8>,
    pub(super) scales: Vec<f32>,
    pub(super) words: Vec<(Text, u32)>,
    pub(super) notice: String,
    moments: Moments,
}

/// What the standard deviation of all numbers needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl VectorTable {
    /// An empty table of vectors with `dim` numbers each.
    pub fn new(dim: usize) -> Self {
        Self { dim, ..Self::default() }
    }

    /// How many numbers a vector has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Is there no word at all?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.scales.len()
    }

    /// Where the vectors come from and under which licence.
    pub fn notice(&self) -> &str {
        &self.notice
    }

    /// Says where the vectors come from and under which licence.
    pub fn set_notice(&mut self, notice: impl Into<String>) {
        self.notice = notice.into();
    }

    /// The standard deviation of all numbers.
    pub fn scale(&self) -> f32 {
        let Moments { count, sum, squares } = self.moments;
        let mean = sum / count.max(1.0);
        (squares / count.max(1.0) - mean * mean).max(0.0).sqrt() as f32
    }

    /// Adds a row and returns its number; an error unless it has `dim` finite numbers.
    pub fn push_row(&mut self, vector: &[f32]) -> Result<u32> {
        if vector.len() != self.dim || !vector.iter().all(|number| number.is_finite()) {
            let reason =
                format!("{} numbers in a vector; expected {} finite ones", vector.len(), self.dim);
            return Err(Error::Setting(reason));
        }
        if self.rows() >= LARGEST_ROWS {
            return Err(Error::Setting(format!("more than {LARGEST_ROWS} rows; prune them first")));
        }
        let row = self.rows() as u32;
        let largest = vector.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
        let scale = largest / 127.0;
        if scale > LARGEST_SCALE {
            return Err(Error::Setting(format!("the number {largest} is too large for a vector")));
        }
        let inverse = if scale > 0.0 { 1.0 / f64::from(scale) } else { 0.0 };
        self.rows.extend(vector.iter().map(|number| (f64::from(*number) * inverse).round() as i8));
        self.scales.push(scale);
        self.moments.count += vector.len() as f64;
        self.moments.sum += vector.iter().map(|number| f64::from(*number)).sum::<f64>();
        self.moments.squares += vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>();
        Ok(row)
    }

    /// Gives a word per row. The first of several rows for one word counts.
    pub fn push_word(&mut self, word: &str, row: u32) {
        self.words.push((Text::new(word), row));
    }

    /// Adds a word with a row of its own.
    pub fn push(&mut self, word: &str, vector: &[f32]) -> Result<()> {
        let row = self.push_row(vector)?;
        self.push_word(word, row);
        Ok(())
    }

    /// The table of an opened file.
    pub fn from_vectors(vectors: &WordVectors) -> Self {
        let mut table = Self::new(vectors.dim());
        for row in 0..vectors.rows() as u32 {
            if let Some((values, scale)) = vectors.quantised(row) {
                table.rows.extend_from_slice(values);
                table.scales.push(scale);
            }
        }
        table.words = vectors.words().map(|(word, row)| (word.into(), row)).collect();
        table.set_notice(vectors.notice());
        // The scale that users divide by stays that of the whole table.
        table.moments =
            Moments { count: 1.0, sum: 0.0, squares: f64::from(vectors.scale()).powi(2) };
        table
    }

    /// Keeps only what the lookup of the wanted words can find, and the rows that those words have.
    ///
    /// Every wanted word is then found exactly as before.
    pub fn prune<'a>(&mut self, wanted: impl IntoIterator<Item = &'a str>) {
        let forms: HashSet<String> = wanted.into_iter().flat_map(forms).collect();
        self.words.retain(|(word, _)| forms.contains(word.as_str()));
        let mut new_rows = vec![None; self.rows()];
        let (mut rows, mut scales) = (Vec::new(), Vec::new());
        for (_, row) in &mut self.words {
            let old = *row as usize;
            *row = *new_rows[old].get_or_insert_with(|| {
                rows.extend_from_slice(&self.rows[old * self.dim..(old + 1) * self.dim]);
                scales.push(self.scales[old]);
                scales.len() as u32 - 1
            });
        }
        (self.rows, self.scales) = (rows, scales);
    }
}

/// A word as it is, lower-cased, Capitalised and UPPER-cased: what a lookup tries.
fn forms(word: &str) -> [String; 4] {
    let mut letters = word.chars();
    let first = letters.next();
    let capitalised = first
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters.as_str().to_lowercase().chars())
        .collect();
    [word.to_owned(), word.to_lowercase(), capitalised, word.to_uppercase()]
}
