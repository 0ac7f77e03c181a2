//! The parts of a word that pieces cover: its text without what a BERT does not see, cut at spaces,
//! punctuation and Chinese characters.

use serde::{Deserialize, Serialize};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

/// How the text of a word is cut into parts: the settings of a `BertNormalizer`.
#[allow(clippy::struct_excessive_bools, reason = "as many as the normaliser has")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieceRules {
    /// Leaves out control characters, and takes every white space for a space.
    pub clean: bool,
    /// Makes each Chinese character a part of its own.
    pub split_chinese: bool,
    /// Takes letters apart from their accents, and leaves the accents out.
    pub strip_accents: bool,
    /// Makes all letters small.
    pub lowercase: bool,
    /// Parts of more characters than this are unknown.
    pub longest: usize,
}

/// Those of the uncased BERT.
impl Default for PieceRules {
    fn default() -> Self {
        Self {
            clean: true,
            split_chinese: true,
            strip_accents: true,
            lowercase: true,
            longest: 100,
        }
    }
}

/// The parts of a word, in the order of its text. `text` is working memory.
pub(super) fn of<'a>(
    word: &str,
    rules: &PieceRules,
    text: &'a mut String,
) -> impl Iterator<Item = &'a str> {
    text.clear();
    let characters = word
        .chars()
        .filter(|c| !(rules.clean && is_unseen(*c)))
        .flat_map(|c| alone(c, rules.split_chinese && is_chinese(c)));
    let add = |c: char| {
        if rules.lowercase {
            c.to_lowercase().for_each(|c| append(c, text));
        } else {
            append(c, text);
        }
    };
    if rules.strip_accents {
        characters.nfd().map(|(c, _)| c).filter(|c| !c.is_mark_nonspacing()).for_each(add);
    } else {
        characters.for_each(add);
    }
    text.split(' ').filter(|part| !part.is_empty())
}

/// Appends a character; punctuation becomes a part of its own.
fn append(c: char, text: &mut String) {
    let punctuation = c.is_ascii_punctuation() || c.is_punctuation();
    text.extend(alone(if c.is_whitespace() { ' ' } else { c }, punctuation));
}

/// A character, between spaces if it is to be a part of its own.
fn alone(c: char, alone: bool) -> impl Iterator<Item = char> {
    let space = alone.then_some(' ');
    space.into_iter().chain([c]).chain(space)
}

/// Is it a control character, or the one for what could not be read?
fn is_unseen(c: char) -> bool {
    let is_control = c.is_other() && !matches!(c, '\t' | '\n' | '\r');
    is_control || matches!(c, '\0' | '\u{fffd}')
}

/// Is it in a block of Chinese characters? The blocks are those of `tokenizers`, its gap from
/// U+2B820 to U+2B91F included.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}
