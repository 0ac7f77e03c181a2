//! Plain text to words, as the corpus of a task has them.

mod spoken;
mod written;

use serde::{Deserialize, Serialize};

/// How a model's corpus splits text into words.
///
/// ```
/// use tapir::Tokenizer;
/// let text = "What's playing, Dr. Who?";
/// assert_eq!(Tokenizer::Spoken.words(text), ["what", "s", "playing", "dr", "who"]);
/// assert_eq!(Tokenizer::Written.words(text), ["What", "'s", "playing", ",", "Dr.", "Who", "?"]);
/// assert_eq!(Tokenizer::Whitespace.words(text), ["What's", "playing,", "Dr.", "Who?"]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokenizer {
    /// The text has its words apart already.
    #[default]
    Whitespace,
    /// As a recogniser gives it, and as SNIPS is: lower case, no punctuation, contractions split at
    /// the apostrophe.
    Spoken,
    /// As a treebank has it: case kept, punctuation as words, `n't` and `'s` split off.
    Written,
}

/// A word, and where it stands in the text that it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The word as a model reads it.
    pub word: String,
    /// Where it begins: characters (Unicode scalar values) from the start of the text.
    pub start: usize,
    /// Where it ends: one past its last character.
    pub end: usize,
}

impl Tokenizer {
    /// The words of a text, in order; none of them is empty.
    pub fn words(self, text: &str) -> Vec<String> {
        self.tokens(text).into_iter().map(|token| token.word).collect()
    }

    /// The words of a text, and where they stand in it.
    ///
    /// ```
    /// let tokens = tapir::Tokenizer::Spoken.tokens("Café, bitte!");
    /// assert_eq!((tokens[1].word.as_str(), tokens[1].start, tokens[1].end), ("bitte", 6, 11));
    /// ```
    pub fn tokens(self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        // Characters before the chunk, counted once from chunk to chunk.
        let (mut bytes, mut characters) = (0, 0);
        for chunk in text.split_whitespace() {
            let at = chunk.as_ptr() as usize - text.as_ptr() as usize;
            characters += text[bytes..at].chars().count();
            bytes = at;
            // Words come in order, so that no character is counted twice.
            let (mut counted, mut here) = (0, characters);
            let mut add = |word: String, range: std::ops::Range<usize>| {
                let start = here + chunk[counted..range.start].chars().count();
                let end = start + chunk[range.clone()].chars().count();
                (counted, here) = (range.end, end);
                tokens.push(Token { word, start, end });
            };
            match self {
                Self::Whitespace => add(chunk.to_owned(), 0..chunk.len()),
                Self::Spoken => spoken::split(chunk, &mut add),
                Self::Written => {
                    for range in written::split(chunk) {
                        add(chunk[range.clone()].to_owned(), range);
                    }
                }
            }
        }
        tokens
    }
}

/// Combining marks belong to the letter before them.
fn is_mark(c: char) -> bool {
    ('\u{0300}'..='\u{036f}').contains(&c) || matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Tokenizer; 3] = [Tokenizer::Whitespace, Tokenizer::Spoken, Tokenizer::Written];

    proptest! {
        #[test]
        fn no_word_is_empty_and_no_text_panics(text in any::<String>()) {
            for tokenizer in ALL {
                let words = tokenizer.words(&text);
                prop_assert!(words.iter().all(|word| !word.is_empty() && !word.contains(char::is_whitespace)));
            }
            let written = Tokenizer::Written.words(&text).concat();
            prop_assert_eq!(written, text.split_whitespace().collect::<String>());
        }

        /// A client may send words that were made by the same tokenizer.
        #[test]
        fn words_of_words_are_the_same_words(text in r#"([a-zA-Z0-9é'’.,!?&@:/()"$%-]{1,12} ?){0,8}"#) {
            for tokenizer in ALL {
                let words = tokenizer.words(&text);
                let again: Vec<String> = words.iter().flat_map(|word| tokenizer.words(word)).collect();
                prop_assert_eq!(words, again);
            }
        }

        #[test]
        fn tokens_stand_where_they_say(text in any::<String>()) {
            let characters: Vec<char> = text.chars().collect();
            for tokenizer in ALL {
                let mut last = 0;
                for Token { word, start, end } in tokenizer.tokens(&text) {
                    prop_assert!(last <= start && start < end && end <= characters.len());
                    last = end;
                    if tokenizer != Tokenizer::Spoken {
                        prop_assert_eq!(word, characters[start..end].iter().collect::<String>());
                    }
                }
            }
        }
    }
}
