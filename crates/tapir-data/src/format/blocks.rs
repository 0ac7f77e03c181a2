//! Sentences as blocks of lines with a blank line between: columns, CoNLL-U and
//! Alarm/Reminder/Weather.

use super::check_word;
use crate::{Result, Sentence, lines::Lines};

/// What a format makes of a line.
pub(super) trait Parse {
    /// Adds what the line says to the sentence, or says what is wrong with it.
    fn parse(&self, line: &str, sentence: &mut Sentence) -> Result<(), String>;
}

/// Sentences out of blocks of lines. A bad line costs its sentence, not the file.
pub(super) struct Blocks<P> {
    lines: Lines,
    parser: P,
    /// A guess at the next sentence's length.
    expected: usize,
}

impl<P: Parse> Blocks<P> {
    pub(super) fn new(lines: Lines, parser: P) -> Self {
        Self { lines, parser, expected: 16 }
    }
}

impl<P: Parse> Iterator for Blocks<P> {
    type Item = Result<Sentence>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut sentence = Sentence {
            words: Vec::with_capacity(self.expected),
            labels: Vec::with_capacity(self.expected),
            intent: None,
        };
        let mut bad = None;
        loop {
            let parsed = match self.lines.next_line() {
                Ok(Some(line)) if is_blank(line) => {
                    if bad.is_some() || !sentence.is_empty() {
                        break;
                    }
                    continue;
                }
                Ok(Some(_)) if bad.is_some() => continue,
                Ok(Some(line)) => self
                    .parser
                    .parse(line, &mut sentence)
                    .and_then(|()| sentence.words.last().map_or(Ok(()), |word| check_word(word))),
                Ok(None) => break,
                Err(error) if error.is_bad_line() => {
                    bad.get_or_insert(error);
                    continue;
                }
                Err(error) => return Some(Err(error)),
            };
            if let Err(reason) = parsed {
                bad = Some(self.lines.error(reason));
            }
        }
        match bad {
            Some(error) => Some(Err(error)),
            None if sentence.is_empty() => None,
            None => {
                self.expected = sentence.len() + 4;
                Some(Ok(sentence))
            }
        }
    }
}

/// A line of nothing but spaces and tabs ends a sentence, too.
fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ' || byte == b'\t')
}

/// A line's first column and what follows it, if anything does.
pub(super) fn first_column(line: &str, separator: u8) -> (&str, Option<&str>) {
    // Columns are short: looking at each byte is quicker than a search made for long text.
    match line.bytes().position(|byte| byte == separator) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    }
}

/// A line's last column and what precedes it, if anything does.
pub(super) fn last_column(line: &str, separator: u8) -> (Option<&str>, &str) {
    match line.bytes().rposition(|byte| byte == separator) {
        Some(at) => (Some(&line[..at]), &line[at + 1..]),
        None => (None, line),
    }
}
