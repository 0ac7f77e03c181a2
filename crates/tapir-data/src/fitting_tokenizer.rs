//! The tokenizer that a corpus was made with, as far as its words tell.

use tapir::Tokenizer;

use crate::Corpus;

/// The share of words that a tokenizer may change and still be the corpus's: annotators make mistakes,
/// and treebanks differ in details.
const TOLERANCE: f64 = 0.05;

/// The tokenizer that leaves the words of a corpus as they are: of `spoken` and `written` the one that
/// changes fewer, `whitespace` if both change many. So text that people type is split as the corpus is, and a
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
    let changed = |tokenizer: Tokenizer| {
        (words().filter(|word| tokenizer.words(word) != [word.as_str()]).count(), tokenizer)
    };
    let (spoken, written) = (changed(Tokenizer::Spoken), changed(Tokenizer::Written));
    let (count, fewest) = if written.0 < spoken.0 { written } else { spoken };
    let most = TOLERANCE * words().count() as f64;
    if count as f64 <= most { fewest } else { Tokenizer::Whitespace }
}
