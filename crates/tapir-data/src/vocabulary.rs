//! Words and labels as numbers: the paper's closed vocabulary, and the open one of word vectors.

use std::{collections::HashMap, sync::Arc};

use tapir::WordVectors;

use crate::{Sentence, Text};

/// What fills a batch behind the end of a sentence; also the label of a step that expects none.
pub const PADDING: u32 = 0;
/// A word that the vocabulary does not know.
pub const UNK: u32 = 1;
/// The empty word that a delayed model reads after the end.
pub const NULL: u32 = 2;
/// The id of the first word of a closed vocabulary, and of row 0 of an open one.
pub const FIRST_WORD: u32 = 3;

/// Words as ids: [`PADDING`], [`UNK`], [`NULL`], then words.
///
/// ```
/// use tapir_data::{Sentence, UNK, Vocabulary};
/// let train = [Sentence::new(["play", "some", "play"], ["O", "O", "O"])];
/// let vocabulary = Vocabulary::closed(&train);
/// assert_eq!(["play", "some", "jazz"].map(|word| vocabulary.id(word)), [3, 4, UNK]);
/// assert_eq!(vocabulary.len(), 5);
/// ```
#[derive(Clone, Debug)]
pub enum Vocabulary {
    /// The words of training, in order of first occurrence, each with a trained row.
    Closed(Numbered),
    /// Every word that has a vector; its id is its row plus [`FIRST_WORD`].
    Open(Arc<WordVectors>),
}

impl Vocabulary {
    /// The words of these sentences, in order of first occurrence.
    pub fn closed<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Self {
        Self::from_words(sentences.into_iter().flat_map(|sentence| &sentence.words).map(Text::as_str))
    }

    /// These words in this order, as a saved vocabulary lists them.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Closed(Numbered::new(FIRST_WORD, words))
    }

    /// Every word that has a vector.
    pub fn open(vectors: Arc<WordVectors>) -> Self {
        Self::Open(vectors)
    }

    /// The id of a word; [`UNK`] if it has none.
    pub fn id(&self, word: &str) -> u32 {
        match self {
            Self::Closed(words) => words.id(word).unwrap_or(UNK),
            Self::Open(vectors) => vectors.row(word).map_or(UNK, |row| row + FIRST_WORD),
        }
    }

    /// How many ids there are, the three special ones among them: the rows of an embedding table.
    pub fn len(&self) -> usize {
        FIRST_WORD as usize
            + match self {
                Self::Closed(words) => words.names.len(),
                Self::Open(vectors) => vectors.rows(),
            }
    }

    /// Never: the special ids are always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The words of a closed vocabulary in order of their ids, from [`FIRST_WORD`]; none for an open one.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Closed(words) => words.names.as_slice(),
            Self::Open(_) => &[],
        };
        names.iter().map(Text::as_str)
    }

    /// For each id, the row of `vectors` to start from: what a trained table is initialised with.
    pub fn vector_rows(&self, vectors: &WordVectors) -> Vec<Option<u32>> {
        let special = [None; FIRST_WORD as usize];
        let rows: Vec<Option<u32>> = match self {
            Self::Closed(words) => words.names.iter().map(|word| vectors.row(word)).collect(),
            Self::Open(_) => (0..vectors.rows() as u32).map(Some).collect(),
        };
        special.into_iter().chain(rows).collect()
    }
}

/// Labels as ids: [`PADDING`], then labels in order of first occurrence.
///
/// ```
/// use tapir_data::{Labels, Sentence};
/// let train = [Sentence::new(["play", "jazz"], ["O", "B-genre"])];
/// let labels = Labels::of(&train);
/// assert_eq!((labels.id("O"), labels.id("B-genre"), labels.id("B-city")), (Some(1), Some(2), None));
/// assert_eq!(labels.name(2), Some("B-genre"));
/// ```
#[derive(Clone, Debug)]
pub struct Labels(Numbered);

impl Labels {
    /// The labels of these sentences, in order of first occurrence.
    pub fn of<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Self {
        Self::from_names(sentences.into_iter().flat_map(|sentence| &sentence.labels).map(Text::as_str))
    }

    /// These labels in this order, as a saved model lists them.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(Numbered::new(PADDING + 1, names))
    }

    /// The id of a label, if training has shown it.
    pub fn id(&self, label: &str) -> Option<u32> {
        self.0.id(label)
    }

    /// The label of an id; none for [`PADDING`].
    pub fn name(&self, id: u32) -> Option<&str> {
        let index = id.checked_sub(PADDING + 1)?;
        self.0.names.get(index as usize).map(Text::as_str)
    }

    /// How many ids there are, [`PADDING`] among them.
    pub fn len(&self) -> usize {
        self.0.names.len() + 1
    }

    /// Is there no label but [`PADDING`]?
    pub fn is_empty(&self) -> bool {
        self.0.names.is_empty()
    }

    /// The labels in order of their ids, from 1.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(Text::as_str)
    }
}

/// Names numbered in order of first occurrence.
#[derive(Clone, Debug)]
pub struct Numbered {
    first: u32,
    names: Vec<Text>,
    ids: HashMap<Text, u32>,
}

impl Numbered {
    fn new<'a>(first: u32, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self { first, names: Vec::new(), ids: HashMap::new() };
        for name in names {
            if !all.ids.contains_key(name) {
                all.ids.insert(name.into(), all.first + all.names.len() as u32);
                all.names.push(name.into());
            }
        }
        all
    }

    fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }
}
