//! How well a tokenizer splits raw text, against a treebank: F1 of words as the CoNLL 2018 shared task
//! counts it.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use tapir::Tokenizer;

use crate::{Error, Result};

/// Words that a tokenizer finds in the `# text` lines of a CoNLL-U file. A word is right if it covers
/// the same characters of the text, spaces aside, as one of the treebank's syntactic words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokenization {
    /// Sentences that were compared.
    pub sentences: usize,
    /// Sentences that were not, since their words do not make up their text.
    pub left_out: usize,
    /// Words of the treebank.
    pub gold: usize,
    /// Words of the tokenizer.
    pub found: usize,
    /// Words of both.
    pub right: usize,
}

impl Tokenization {
    /// Compares over a CoNLL-U file.
    pub fn of(path: &Path, tokenizer: Tokenizer) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io(path, error))?;
        let mut counts = Self::default();
        let (mut text, mut words) = (None, Vec::new());
        // An empty line ends the last sentence, too.
        for line in BufReader::new(file).lines().chain([Ok(String::new())]) {
            let line = line.map_err(|error| Error::io(path, error))?;
            if let Some(raw) = line.strip_prefix("# text = ") {
                text = Some(raw.to_owned());
            } else if line.trim().is_empty() {
                if let Some(text) = text.take() {
                    counts.add(&text, &words, tokenizer);
                }
                words.clear();
            } else {
                // Neither comments, nor ranges (`1-2 don't`), nor empty nodes (`8.1`) are words.
                let mut columns = line.split('\t');
                let is_word = columns.next().is_some_and(|id| id.parse::<usize>().is_ok());
                words.extend(columns.next().filter(|_| is_word).map(str::to_owned));
            }
        }
        if counts.sentences == 0 {
            return Err(Error::file(path, "no sentence with a `# text` line; expected CoNLL-U"));
        }
        Ok(counts)
    }

    fn add(&mut self, text: &str, words: &[String], tokenizer: Tokenizer) {
        let gold = spans(words);
        let found = spans(&tokenizer.words(text));
        let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        if gold.iter().map(|(_, end)| *end).max().unwrap_or(0) != solid(text) {
            self.left_out += 1;
            return;
        }
        self.sentences += 1;
        self.gold += gold.len();
        self.found += found.len();
        self.right += gold.intersection(&found).count();
    }

    /// Of the words found, the share that is right.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.found.max(1) as f64
    }

    /// Of the treebank's words, the share that is found.
    pub fn recall(&self) -> f64 {
        self.right as f64 / self.gold.max(1) as f64
    }

    /// Their harmonic mean.
    pub fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (self.gold + self.found).max(1) as f64
    }
}

/// Which characters each word covers, spaces aside.
fn spans(words: &[String]) -> HashSet<(usize, usize)> {
    let mut start = 0;
    let span = |word: &String| {
        let before = start;
        start += word.chars().filter(|c| !c.is_whitespace()).count();
        (before, start)
    };
    words.iter().map(span).collect()
}

impl fmt::Display for Tokenization {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { sentences, left_out, gold, found, right } = self;
        writeln!(f, "sentences {sentences}, left out {left_out}")?;
        writeln!(f, "words     {gold} of the treebank, {found} found, {right} right")?;
        let [p, r, f1] = [self.precision(), self.recall(), self.f1()].map(|share| 100.0 * share);
        writeln!(f, "precision {p:.2}, recall {r:.2}, F1 {f1:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_by_the_characters_that_they_cover() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.conllu");
        let rows = |text: &str, rows: &[&str]| {
            let rows: Vec<String> = rows.iter().map(|row| format!("{row}\t_\t_")).collect();
            format!("# sent_id = 1\n# text = {text}\n{}\n\n", rows.join("\n"))
        };
        let sentences = [
            rows("I don't.", &["1\tI", "2-3\tdon't", "2\tdo", "3\tn't", "4\t."]),
            rows("a-b c", &["1\ta", "2\t-", "3\tb", "3.1\tempty", "4\tc"]),
            rows("not the words", &["1\tother"]),
        ];
        std::fs::write(&path, sentences.concat()).unwrap();
        let spaces = Tokenization::of(&path, Tokenizer::Whitespace).unwrap();
        let expected = Tokenization { sentences: 2, left_out: 1, gold: 8, found: 4, right: 2 };
        assert_eq!(spaces, expected);
        let written = Tokenization::of(&path, Tokenizer::Written).unwrap();
        assert!((written.f1() - 1.0).abs() < 1e-9, "{written}");
        std::fs::write(&path, "word\tlabel\n").unwrap();
        assert!(Tokenization::of(&path, Tokenizer::Written).is_err());
    }
}
