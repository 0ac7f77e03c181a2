//! Words as a treebank has them: UD English EWT, whose rules these are.

use std::ops::Range;

use super::is_mark;

/// The words of a chunk without spaces, as ranges of bytes that cover it.
pub(super) fn split(chunk: &str) -> Vec<Range<usize>> {
    let inner = |c: char| c.is_alphanumeric() || is_mark(c);
    let Some(start) = chunk.find(inner) else {
        let mut words = Vec::new();
        marks(chunk, 0, &mut words);
        return words;
    };
    if is_suffix(chunk) {
        return std::iter::once(0..chunk.len()).collect();
    }
    let end = chunk
        .rfind(inner)
        .map_or(chunk.len(), |at| at + chunk[at..].chars().next().map_or(1, char::len_utf8));
    let mut words = Vec::new();
    marks(&chunk[..start], 0, &mut words);
    contraction(&chunk[start..end], start, &mut words);
    marks(&chunk[end..], end, &mut words);
    words
}

/// Each punctuation mark by itself, runs of the same one together: `...`, `!!`.
fn marks(text: &str, offset: usize, words: &mut Vec<Range<usize>>) {
    let mut last = None;
    for (at, c) in text.char_indices() {
        let end = offset + at + c.len_utf8();
        match words.last_mut() {
            Some(word) if last == Some(c) => word.end = end,
            _ => words.push(offset + at..end),
        }
        last = Some(c);
    }
}

const SUFFIXES: [&str; 14] =
    ["n't", "n’t", "'s", "’s", "'m", "’m", "'d", "’d", "'re", "’re", "'ve", "’ve", "'ll", "’ll"];

/// Is it what was split off another word?
fn is_suffix(word: &str) -> bool {
    SUFFIXES.iter().any(|suffix| word.eq_ignore_ascii_case(suffix))
}

/// `don't` into `do n't`, `it's` into `it 's`.
fn contraction(word: &str, offset: usize, words: &mut Vec<Range<usize>>) {
    let at = |suffix: &str| {
        let start = word
            .len()
            .checked_sub(suffix.len())
            .filter(|start| *start > 0 && word.is_char_boundary(*start))?;
        word[start..].eq_ignore_ascii_case(suffix).then_some(start)
    };
    let end = offset + word.len();
    match SUFFIXES.iter().find_map(|suffix| at(suffix)) {
        Some(start) => words.extend([offset..offset + start, offset + start..end]),
        None => words.push(offset..end),
    }
}

#[cfg(test)]
mod tests {
    use crate::Tokenizer;

    #[test]
    fn writing_keeps_everything() {
        let words = |text| Tokenizer::Written.words(text).join("|");
        assert_eq!(
            words("They don't (won't) go... It's Ann's."),
            "They|do|n't|(|wo|n't|)|go|...|It|'s|Ann|'s|."
        );
        assert_eq!(words("\"He'll say: 'no'!?\""), "\"|He|'ll|say|:|'|no|'|!|?|\"");
    }
}
