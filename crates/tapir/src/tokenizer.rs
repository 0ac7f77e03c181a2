//! Plain text to words, as the corpus of a task has them.

use serde::{Deserialize, Serialize};

/// How a model's corpus splits text into words.
///
/// ```
/// use tapir::Tokenizer;
/// let text = "What's playing, Dr. Who?";
/// assert_eq!(Tokenizer::Spoken.words(text), ["what", "s", "playing", "dr", "who"]);
/// assert_eq!(Tokenizer::Written.words(text), ["What", "'s", "playing", ",", "Dr", ".", "Who", "?"]);
/// assert_eq!(Tokenizer::Whitespace.words(text), ["What's", "playing,", "Dr.", "Who?"]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokenizer {
    /// The text has its words apart already.
    #[default]
    Whitespace,
    /// As a recogniser gives it, and as SNIPS is: lower case, no punctuation, contractions split at the apostrophe.
    Spoken,
    /// As a treebank has it: case kept, punctuation as words, `n't` and `'s` split off.
    Written,
}

impl Tokenizer {
    /// The words of a text, in order; none of them is empty.
    pub fn words(self, text: &str) -> Vec<String> {
        let chunks = text.split_whitespace();
        match self {
            Self::Whitespace => chunks.map(str::to_owned).collect(),
            Self::Spoken => chunks.flat_map(spoken).collect(),
            Self::Written => chunks.flat_map(written).collect(),
        }
    }
}

/// Marks inside a word that SNIPS keeps: `r&b`, `top-rated`, `4:30`, `24/7`.
fn joins(c: char) -> bool {
    matches!(c, '&' | '-' | '–' | ':' | '/' | '.' | '+' | '_' | '@')
}

fn spoken(chunk: &str) -> Vec<String> {
    let apostrophe = |c: char| matches!(c, '\'' | '’' | '`');
    let mut words = Vec::new();
    for part in chunk.split(apostrophe) {
        let part = part.trim_matches(|c: char| !c.is_alphanumeric());
        let kept = |c: &char| c.is_alphanumeric() || joins(*c) || is_mark(*c);
        let word: String = part.chars().filter(kept).flat_map(char::to_lowercase).collect();
        if !word.is_empty() {
            words.push(word);
        }
    }
    // An ampersand alone is a word ("mumford & sons").
    if words.is_empty() && chunk == "&" {
        words.push(chunk.to_owned());
    }
    words
}

/// Combining marks belong to the letter before them.
fn is_mark(c: char) -> bool {
    ('\u{0300}'..='\u{036f}').contains(&c) || c == '\u{200d}'
}

fn written(chunk: &str) -> Vec<String> {
    let inner = |c: char| c.is_alphanumeric() || is_mark(c);
    let Some(start) = chunk.find(inner) else { return marks(chunk) };
    let end = chunk
        .rfind(inner)
        .map_or(chunk.len(), |at| at + chunk[at..].chars().next().map_or(1, char::len_utf8));
    let mut words = marks(&chunk[..start]);
    words.extend(contraction(&chunk[start..end]));
    words.extend(marks(&chunk[end..]));
    words
}

/// Each punctuation mark by itself, runs of the same one together: `...`, `!!`.
fn marks(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.ends_with(c) => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    words
}

/// `don't` into `do n't`, `it's` into `it 's`.
fn contraction(word: &str) -> Vec<String> {
    let at = |suffix: &str| {
        let start = word
            .len()
            .checked_sub(suffix.len())
            .filter(|start| *start > 0 && word.is_char_boundary(*start))?;
        word[start..].eq_ignore_ascii_case(suffix).then_some(start)
    };
    let suffixes =
        ["n't", "n’t", "'s", "’s", "'m", "’m", "'d", "’d", "'re", "’re", "'ve", "’ve", "'ll", "’ll"];
    match suffixes.iter().find_map(|suffix| at(suffix)) {
        Some(start) => vec![word[..start].to_owned(), word[start..].to_owned()],
        None => vec![word.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn speech_is_lower_case_without_punctuation() {
        let words = |text| Tokenizer::Spoken.words(text).join("|");
        assert_eq!(words("I'd like R&B at 4:30 p.m., please!"), "i|d|like|r&b|at|4:30|p.m|please");
        assert_eq!(words("Mumford & Sons -- \"live\" (top-rated)"), "mumford|&|sons|live|top-rated");
        assert_eq!(words("  ?! \n "), "");
        assert_eq!(words("Café ÉXITOS"), "café|éxitos");
    }

    #[test]
    fn writing_keeps_everything() {
        let words = |text| Tokenizer::Written.words(text).join("|");
        assert_eq!(
            words("They don't (won't) go... It's Ann's."),
            "They|do|n't|(|wo|n't|)|go|...|It|'s|Ann|'s|."
        );
        assert_eq!(words("\"He'll say: 'no'!?\""), "\"|He|'ll|say|:|'|no|'|!|?|\"");
    }

    proptest! {
        #[test]
        fn no_word_is_empty_and_no_text_panics(text in any::<String>()) {
            for tokenizer in [Tokenizer::Whitespace, Tokenizer::Spoken, Tokenizer::Written] {
                let words = tokenizer.words(&text);
                prop_assert!(words.iter().all(|word| !word.is_empty() && !word.contains(char::is_whitespace)));
            }
            let all = |words: Vec<String>| words.concat();
            let written = all(Tokenizer::Written.words(&text));
            prop_assert_eq!(written, text.split_whitespace().collect::<String>());
        }
    }
}
