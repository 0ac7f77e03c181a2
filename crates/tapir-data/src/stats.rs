//! What is in a corpus: the table of the paper's appendix, and a report on its health.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
};

use serde::Serialize;
use tapir::{Scheme, WordVectors};

use crate::scheme::invalid_iob;
use crate::{Corpus, CorpusScheme, Sentence, Split, Text};

/// Everything that `tapir data stats` says about a corpus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Sentences in train, valid and test.
    pub sentences: [usize; 3],
    /// Distinct labels in all splits.
    pub labels: usize,
    /// Distinct words in train and valid.
    pub vocabulary: usize,
    /// Words in train and valid.
    pub tokens_train_valid: usize,
    /// Words in test.
    pub tokens_test: usize,
    /// Mean words per sentence in train and valid.
    pub mean_length_train_valid: f64,
    /// Mean words per sentence in test.
    pub mean_length_test: f64,
    /// What may be wrong with it.
    pub health: Health,
}

/// What may be wrong with a corpus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// Labels that a model of the task's scheme would not understand.
    pub strange_labels: Vec<String>,
    /// `I-x` that continues nothing, in train, valid and test; absent where labels are plain.
    pub invalid_iob: Option<[usize; 3]>,
    /// Labels of valid or test that training never shows.
    pub unseen_labels: Vec<String>,
    /// Words of test, counted each time, that neither train nor valid holds.
    pub unknown_tokens: usize,
    /// The share of those words in test.
    pub unknown_rate: f64,
    /// Distinct such words.
    pub unknown_words: usize,
    /// How many of the distinct ones have a word vector; absent without vectors.
    pub unknown_words_with_vector: Option<usize>,
    /// How many words of the vocabulary have a word vector; absent without vectors.
    pub vocabulary_with_vector: Option<usize>,
    /// The share of those words in the vocabulary; 0 without vectors.
    pub vocabulary_with_vector_rate: f64,
    /// Sentences of valid that train holds, of test that train holds, of test that valid holds.
    pub duplicates: Duplicates,
    /// Words in the longest sentence of train, valid and test.
    pub longest: [usize; 3],
    /// Sentences left out because they are longer than the task allows.
    pub too_long: usize,
}

/// Sentences that two splits share, word for word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Sentences of valid that are also in train.
    pub valid_in_train: usize,
    /// Sentences of test that are also in train.
    pub test_in_train: usize,
    /// Sentences of test that are also in valid.
    pub test_in_valid: usize,
}

impl Stats {
    /// Counts a corpus; with vectors, also what they cover.
    ///
    /// ```
    /// use tapir_data::{Corpus, CorpusScheme, Sentence, Stats};
    /// let train = vec![Sentence::new(["play", "westbam"], ["O", "B-artist"])];
    /// let test = vec![Sentence::new(["play", "slayer"], ["O", "I-artist"])];
    /// let corpus = Corpus { train, test, ..Corpus::default() };
    /// let stats = Stats::of(&corpus, CorpusScheme::Iob, None);
    /// assert_eq!(stats.vocabulary, 2);
    /// assert_eq!(stats.health.invalid_iob, Some([0, 0, 1]));
    /// assert_eq!(stats.health.unseen_labels, ["I-artist"]);
    /// ```
    pub fn of(corpus: &Corpus, scheme: CorpusScheme, vectors: Option<&WordVectors>) -> Self {
        let vocabulary: HashSet<&Text> =
            corpus.train_and_valid().flat_map(|sentence| &sentence.words).collect();
        let sentences = Split::ALL.map(|split| corpus.split(split).len());
        let [train, valid, test] = Split::ALL.map(|split| tokens(corpus.split(split)));
        let labels = Split::ALL.map(|split| labels(corpus.split(split)));
        Self {
            sentences,
            labels: labels.iter().flatten().collect::<BTreeSet<_>>().len(),
            vocabulary: vocabulary.len(),
            tokens_train_valid: train + valid,
            tokens_test: test,
            mean_length_train_valid: ratio(train + valid, sentences[0] + sentences[1]),
            mean_length_test: ratio(test, sentences[2]),
            health: Health::of(corpus, scheme, vectors, &vocabulary, &labels),
        }
    }
}

impl Health {
    fn of(
        corpus: &Corpus,
        scheme: CorpusScheme,
        vectors: Option<&WordVectors>,
        vocabulary: &HashSet<&Text>,
        labels: &[BTreeSet<&Text>; 3],
    ) -> Self {
        let test_words = || corpus.test.iter().flat_map(|sentence| &sentence.words);
        let unknown_tokens = test_words().filter(|word| !vocabulary.contains(word)).count();
        let unknown: HashSet<&Text> =
            test_words().filter(|word| !vocabulary.contains(word)).collect();
        let covered = |words: &HashSet<&Text>| {
            vectors.map(|vectors| words.iter().filter(|word| vectors.row(word).is_some()).count())
        };
        let vocabulary_with_vector = covered(vocabulary);
        let unseen: BTreeSet<_> =
            labels[1].union(&labels[2]).filter(|label| !labels[0].contains(*label)).collect();
        Self {
            strange_labels: scheme.strangers(corpus),
            invalid_iob: (scheme.of_model() == Scheme::Iob)
                .then(|| Split::ALL.map(|split| corpus.split(split).iter().map(invalid_iob).sum())),
            unseen_labels: unseen.into_iter().map(ToString::to_string).collect(),
            unknown_tokens,
            unknown_rate: ratio(unknown_tokens, tokens(&corpus.test)),
            unknown_words: unknown.len(),
            unknown_words_with_vector: covered(&unknown),
            vocabulary_with_vector,
            vocabulary_with_vector_rate: ratio(
                vocabulary_with_vector.unwrap_or(0),
                vocabulary.len(),
            ),
            duplicates: Duplicates::of(corpus),
            longest: Split::ALL
                .map(|split| corpus.split(split).iter().map(Sentence::len).max().unwrap_or(0)),
            too_long: corpus.too_long,
        }
    }
}

impl Duplicates {
    fn of(corpus: &Corpus) -> Self {
        let (train, valid) = (texts(&corpus.train), texts(&corpus.valid));
        let shared = |sentences: &[Sentence], others: &HashSet<&[Text]>| {
            sentences.iter().filter(|sentence| others.contains(sentence.words.as_slice())).count()
        };
        Self {
            valid_in_train: shared(&corpus.valid, &train),
            test_in_train: shared(&corpus.test, &train),
            test_in_valid: shared(&corpus.test, &valid),
        }
    }
}

/// What the sentences say, whatever their labels.
fn texts(sentences: &[Sentence]) -> HashSet<&[Text]> {
    sentences.iter().map(|sentence| sentence.words.as_slice()).collect()
}

fn tokens(sentences: &[Sentence]) -> usize {
    sentences.iter().map(Sentence::len).sum()
}

fn labels(sentences: &[Sentence]) -> BTreeSet<&Text> {
    sentences.iter().flat_map(|sentence| &sentence.labels).collect()
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [train, valid, test] = self.sentences.map(thousands);
        writeln!(f, "  sentences    {train} train / {valid} valid / {test} test")?;
        writeln!(f, "  labels       {}", self.labels)?;
        writeln!(f, "  vocabulary   {} (train + valid)", thousands(self.vocabulary))?;
        let (known, test) = (thousands(self.tokens_train_valid), thousands(self.tokens_test));
        writeln!(f, "  tokens       {known} train + valid / {test} test")?;
        let (known, test) = (self.mean_length_train_valid, self.mean_length_test);
        writeln!(f, "  mean length  {known:.3} train + valid / {test:.3} test")?;
        write!(f, "\nhealth\n{}", self.health)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.strange_labels.is_empty() {
            let names = self.strange_labels.join(", ");
            let count = self.strange_labels.len();
            writeln!(f, "  labels of another scheme      {count}: {names}")?;
            writeln!(f, "    set `scheme` in the task file: iob, iob1, bioes, io or plain")?;
        }
        if let Some([train, valid, test]) = self.invalid_iob {
            writeln!(
                f,
                "  invalid IOB transitions       {train} train / {valid} valid / {test} test"
            )?;
        }
        let unseen = self.unseen_labels.len();
        let names = if unseen == 0 {
            String::new()
        } else {
            format!(": {}", self.unseen_labels.join(", "))
        };
        writeln!(f, "  labels unseen in training     {unseen}{names}")?;
        let (tokens, words) = (thousands(self.unknown_tokens), thousands(self.unknown_words));
        let rate = 100.0 * self.unknown_rate;
        writeln!(f, "  test words out of vocabulary  {tokens} ({rate:.2} %), {words} distinct")?;
        if let (Some(unknown), Some(known)) =
            (self.unknown_words_with_vector, self.vocabulary_with_vector)
        {
            let share = 100.0 * ratio(unknown, self.unknown_words);
            writeln!(f, "    of which have a vector      {} ({share:.1} %)", thousands(unknown))?;
            let share = 100.0 * self.vocabulary_with_vector_rate;
            writeln!(f, "  vocabulary with a vector      {} ({share:.1} %)", thousands(known))?;
        }
        let Duplicates { valid_in_train, test_in_train, test_in_valid } = self.duplicates;
        let [a, b, c] = [valid_in_train, test_in_train, test_in_valid].map(thousands);
        writeln!(
            f,
            "  sentences in two splits       {a} of valid in train, {b} of test in train, {c} of test in valid"
        )?;
        let [train, valid, test] = self.longest;
        writeln!(f, "  longest sentence              {train} train / {valid} valid / {test} test")?;
        writeln!(f, "  left out as too long          {}", self.too_long)
    }
}

/// 13084 as 13,084.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inside_label_must_continue_something() {
        let labels = ["I-a", "I-a", "O", "B-a", "I-a", "I-b", "B-b", "I-b", "O", "I-b"];
        assert_eq!(invalid_iob(&Sentence::new(labels, labels)), 3);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
