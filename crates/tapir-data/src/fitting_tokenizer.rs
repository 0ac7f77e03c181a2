//! The tokenizer that a corpus was made with, as far as its words tell.

use tapir::Tokenizer;

use crate::Corpus;

/// Words that a tokenizer may change and still be the corpus's: mistakes of annotators.
const TOLERANCE: f64 = 0.01;

/// The tokenizer that leaves the words of a corpus as they are: of `spoken` and `written` the first
/// that does, `whitespace` if neither. So text that people type is split as the corpus is, and a
/// comma does not stay on a word where the corpus has none.
///
/// ```
/// use tapir_data::{Corpus, Sentence, fitting_tokenizer};
/// let corpus = |words: [&'static str; 3]| Corpus {
///     train: vec![Sentence::new(words, ["O", "O", "O"])],
///     ..Corpus::default()
/// };
/// assert_eq!(fitting_tokenizer(&corpus(["two", "green", "apples"])), tapir::Tokenizer::Spoken);
/// assert_eq!(fitting_tokenizer(&corpus(["Apples", "please", "!"])), tapir::Tokenizer::Written);
/// ```
pub fn fitting_tokenizer(corpus: &Corpus) -> Tokenizer {
    let words = || corpus.train_and_valid().flat_map(|sentence| &sentence.words);
    let total = words().count();
    let fits = |tokenizer: &Tokenizer| {
        let changed = words().filter(|word| tokenizer.words(word) != [word.as_str()]).count();
        changed as f64 <= TOLERANCE * total as f64
    };
    [Tokenizer::Spoken, Tokenizer::Written].into_iter().find(fits).unwrap_or(Tokenizer::Whitespace)
}
