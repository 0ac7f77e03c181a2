//! Sentences, and the three parts of a corpus.

use serde::{Deserialize, Serialize};

/// A word or a label. Up to 24 bytes live in place, so that reading allocates almost nothing per
/// word.
pub type Text = compact_str::CompactString;

/// Words, one label for each, and what they all together are about, if that is known.
///
/// ```
/// let sentence = tapir_data::Sentence::new(["play", "westbam"], ["O", "B-artist"]);
/// assert_eq!(sentence.words[1], "westbam");
/// assert_eq!(sentence.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sentence {
    /// The words, in order.
    pub words: Vec<Text>,
    /// The label of each word.
    pub labels: Vec<Text>,
    /// The intent, where the corpus says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Text>,
}

impl Sentence {
    /// A sentence of these words and labels.
    pub fn new<T: Into<Text>>(
        words: impl IntoIterator<Item = T>,
        labels: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            labels: labels.into_iter().map(Into::into).collect(),
            intent: None,
        }
    }

    /// The same with an intent.
    #[must_use]
    pub fn about(mut self, intent: impl Into<Text>) -> Self {
        self.intent = Some(intent.into());
        self
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Is there no word at all?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words, each with its label.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.iter().map(Text::as_str).zip(self.labels.iter().map(Text::as_str))
    }

    pub(crate) fn push(&mut self, word: &str, label: &str) {
        self.words.push(Text::new(word));
        self.labels.push(Text::new(label));
    }
}

/// A part of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// What models learn from.
    Train,
    /// What settings are chosen on.
    Valid,
    /// What scores are reported on.
    Test,
}

impl Split {
    /// All three, in the order of the paper's table.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// `train`, `valid` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }
}

/// A whole corpus in memory, for training.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// What models learn from.
    pub train: Vec<Sentence>,
    /// What settings are chosen on.
    pub valid: Vec<Sentence>,
    /// What scores are reported on.
    pub test: Vec<Sentence>,
    /// How many sentences were left out because they are longer than the task allows.
    pub too_long: usize,
}

impl Corpus {
    /// One of the three parts.
    pub fn split(&self, split: Split) -> &[Sentence] {
        match split {
            Split::Train => &self.train,
            Split::Valid => &self.valid,
            Split::Test => &self.test,
        }
    }

    /// Train, then valid: what the paper's test models learn from.
    pub fn train_and_valid(&self) -> impl Iterator<Item = &Sentence> {
        self.train.iter().chain(&self.valid)
    }
}
