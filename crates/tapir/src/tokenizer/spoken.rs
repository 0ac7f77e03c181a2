//! Words as a recogniser gives them, and as SNIPS has them.

use std::ops::Range;

use super::is_mark;

/// Splits a chunk without spaces; `add` is given each word and where it stands in the chunk.
pub(super) fn split(chunk: &str, add: &mut impl FnMut(String, Range<usize>)) {
    let apostrophe = |c: char| matches!(c, '\'' | '’' | '`');
    let mut start = 0;
    let mut found = false;
    for part in chunk.split(apostrophe) {
        let kept = part.trim_matches(|c: char| !c.is_alphanumeric());
        let is_kept = |c: &char| c.is_alphanumeric() || joins(*c) || is_mark(*c);
        let word: String = kept.chars().filter(is_kept).flat_map(char::to_lowercase).collect();
        if !word.is_empty() {
            let at = start + (kept.as_ptr() as usize - part.as_ptr() as usize);
            add(word, at..at + kept.len());
            found = true;
        }
        start += part.len() + chunk[start + part.len()..].chars().next().map_or(0, char::len_utf8);
    }
    // An ampersand alone is a word ("mumford & sons").
    if !found && chunk == "&" {
        add(chunk.to_owned(), 0..chunk.len());
    }
}

/// Marks inside a word that SNIPS keeps: `r&b`, `top-rated`, `4:30`, `24/7`.
fn joins(c: char) -> bool {
    matches!(c, '&' | '-' | '–' | ':' | '/' | '.' | '+' | '_' | '@')
}

#[cfg(test)]
mod tests {
    use crate::Tokenizer;

    #[test]
    fn speech_is_lower_case_without_punctuation() {
        let words = |text| Tokenizer::Spoken.words(text).join("|");
        assert_eq!(words("I'd like R&B at 4:30 p.m., please!"), "i|d|like|r&b|at|4:30|p.m|please");
        assert_eq!(
            words("Mumford & Sons -- \"live\" (top-rated)"),
            "mumford|&|sons|live|top-rated"
        );
        assert_eq!(words("  ?! \n "), "");
        assert_eq!(words("Café ÉXITOS"), "café|éxitos");
    }
}
