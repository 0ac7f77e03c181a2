//! The vocabulary of a corpus: which words get a trained row.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tapir::{Labels, Vocabulary, WordVectors};

use crate::{Error, Result, Sentence, Text};

/// Which words get a trained row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VocabularyOptions {
    /// A word without a vector needs to occur this often.
    pub min_count: usize,
    /// A word with a vector gets a row of its own, too, if it occurs this often; 0 for never.
    pub tuned: usize,
}

/// The vocabulary of training sentences. Without vectors it is closed: words that occur often
/// enough have a row, others are unknown. With vectors it is open: words that have one need no row.
///
/// ```
/// use tapir_data::{Sentence, VocabularyOptions, vocabulary};
/// let sentences = [Sentence::new(["play", "jazz"], ["O", "O"]), Sentence::new(["play"], ["O"])];
/// let options = VocabularyOptions { min_count: 2, tuned: 0 };
/// let vocabulary = vocabulary(&sentences.iter().collect::<Vec<_>>(), options, None)?;
/// assert!(vocabulary.id("play") != tapir::Vocabulary::UNK);
/// assert!(vocabulary.id("jazz") == tapir::Vocabulary::UNK);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn vocabulary(
    sentences: &[&Sentence],
    options: VocabularyOptions,
    vectors: Option<Arc<WordVectors>>,
) -> Result<Vocabulary> {
    let words = || sentences.iter().flat_map(|sentence| &sentence.words);
    let mut counts: HashMap<&Text, usize> = HashMap::new();
    words().for_each(|word| *counts.entry(word).or_default() += 1);
    let VocabularyOptions { min_count, tuned } = options;
    let trained = |word: &&Text| {
        let count = counts[*word];
        let without = || vectors.as_ref().is_none_or(|vectors| vectors.row(word).is_none());
        count >= min_count && without() || tuned > 0 && count >= tuned
    };
    let vocabulary = Vocabulary::new(distinct(words().filter(trained)))?;
    Ok(match vectors {
        Some(vectors) => vocabulary.with_vectors(vectors),
        None => vocabulary,
    })
}

/// The labels of sentences, in order of first occurrence.
pub fn label_set<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Result<Labels> {
    Ok(Labels::new(distinct(sentences.into_iter().flat_map(|sentence| &sentence.labels)))?)
}

/// The intents of these sentences in order of first occurrence; an error if there is a sentence
/// without one.
pub fn intent_set<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Result<Labels> {
    let mut intents = Vec::new();
    for (i, sentence) in sentences.into_iter().enumerate() {
        intents.push(sentence.intent.as_ref().ok_or_else(|| {
            let words = sentence.words.join(" ");
            Error::Setting(format!(
                "sentence {} (`{words}`) has no intent; expected one for each, in the file `label`, \
                 the column or the JSON field of it (docs/data.md), or a preset without `intents`",
                i + 1
            ))
        })?);
    }
    Ok(Labels::new(distinct(intents.into_iter()))?)
}

/// Each text once, in order of first occurrence.
fn distinct<'a>(texts: impl Iterator<Item = &'a Text>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    texts.map(Text::as_str).filter(|text| seen.insert(*text)).collect()
}
