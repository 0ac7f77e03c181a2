//! The supervision signal (§4): a Linear Transformer, trained with a causal mask, is run
//! restart-incrementally without it; where it changes its mind about an earlier word, REVISE is the
//! action to learn.

use std::fmt;
use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;
use tapir::{Mode, Model, SessionOptions};
use tapir_data::{AtomicFile, Sentence};

use crate::{Error, Result};

/// For each word of each sentence: does the generator revise an earlier label there?
///
/// The first word is never a revision.
pub fn derive_actions(generator: &Model, sentences: &[&Sentence]) -> Result<Vec<Vec<bool>>> {
    let actions = |sentence: &&Sentence| -> Result<Vec<bool>> {
        let mut session =
            generator.session_with(SessionOptions::new().mode(Mode::Restart).undo(0))?;
        let step = |word| -> Result<bool> {
            Ok(session.push(word)?.edits.iter().any(|edit| edit.old.is_some()))
        };
        sentence.words.iter().map(tapir_data::Text::as_str).map(step).collect()
    };
    sentences.par_iter().map(actions).collect()
}

/// The two statistics of the paper's appendix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionStats {
    /// The share of REVISE among all actions.
    pub revise: f64,
    /// The mean over sentences of each one's share of REVISE.
    pub mean_revise: f64,
    /// The share of sentences whose REVISE ratio is in [0, 0.2], (0.2, 0.4], … (0.8, 1].
    pub bins: [f64; 5],
}

impl ActionStats {
    /// Counts actions.
    pub fn of(actions: &[Vec<bool>]) -> Self {
        let count = |actions: &[bool]| actions.iter().filter(|revise| **revise).count();
        let share =
            |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let ratios: Vec<f64> =
            actions.iter().map(|actions| share(count(actions), actions.len())).collect();
        let mut bins = [0usize; 5];
        for actions in actions {
            // Counted in whole numbers: one in five belongs to the first bin.
            let fifths = (5 * count(actions)).div_ceil(actions.len().max(1));
            bins[fifths.saturating_sub(1)] += 1;
        }
        Self {
            revise: share(
                actions.iter().map(|a| count(a)).sum(),
                actions.iter().map(Vec::len).sum(),
            ),
            mean_revise: ratios.iter().sum::<f64>() / ratios.len().max(1) as f64,
            bins: bins.map(|bin| share(bin, ratios.len())),
        }
    }
}

impl fmt::Display for ActionStats {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let write = |revise: f64| 1.0 - revise;
        writeln!(
            f,
            "  overall           WRITE {:.3}  REVISE {:.3}",
            write(self.revise),
            self.revise
        )?;
        writeln!(
            f,
            "  mean a sentence   WRITE {:.3}  REVISE {:.3}",
            write(self.mean_revise),
            self.mean_revise
        )?;
        write!(f, "  sentences by REVISE ratio  ")?;
        for (i, bin) in self.bins.iter().enumerate() {
            write!(f, " {:.1}-{:.1}: {:.2} %", i as f64 / 5.0, (i + 1) as f64 / 5.0, 100.0 * bin)?;
        }
        writeln!(f)
    }
}

/// Writes word TAB label TAB action, a line per word, an empty line after a sentence.
pub(crate) fn write(path: &Path, sentences: &[&Sentence], actions: &[Vec<bool>]) -> Result<()> {
    let mut file = AtomicFile::create(path, true)?;
    let mut text = String::new();
    for (sentence, actions) in sentences.iter().zip(actions) {
        for ((word, label), revise) in sentence.tokens().zip(actions) {
            let action = if *revise { "REVISE" } else { "WRITE" };
            text.extend([word, "\t", label, "\t", action, "\n"]);
        }
        text.push('\n');
    }
    file.write_all(text.as_bytes()).map_err(|error| Error::io(path, error))?;
    Ok(file.commit()?)
}

/// Reads the actions of these sentences back; an error if the file is of another corpus.
pub(crate) fn read(path: &Path, sentences: &[&Sentence]) -> Result<Vec<Vec<bool>>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let invalid = |line: usize, reason: &str| {
        Error::invalid(
            format!("{}:{line}", path.display()),
            format!("{reason}; delete the file to derive the actions again"),
        )
    };
    let mut lines = text.lines().enumerate();
    let mut all = Vec::with_capacity(sentences.len());
    for sentence in sentences {
        let mut actions = Vec::with_capacity(sentence.len());
        for (word, label) in sentence.tokens() {
            let (i, line) =
                lines.next().ok_or_else(|| invalid(text.lines().count(), "ends too early"))?;
            let mut fields = line.split('\t');
            if fields.next() != Some(word) || fields.next() != Some(label) {
                return Err(invalid(
                    i + 1,
                    &format!("expected the word `{word}` with the label `{label}`"),
                ));
            }
            match fields.next() {
                Some("REVISE") => actions.push(true),
                Some("WRITE") => actions.push(false),
                other => {
                    let reason = format!(
                        "the action is `{}`, expected WRITE or REVISE",
                        other.unwrap_or("")
                    );
                    return Err(invalid(i + 1, &reason));
                }
            }
        }
        lines.next();
        all.push(actions);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_paper_s_tables() {
        let actions = [
            vec![false, true],
            vec![false, false, false, false, true],
            vec![false, true, true, true, true],
        ];
        let stats = ActionStats::of(&actions);
        assert!((stats.revise - 6.0 / 12.0).abs() < 1e-12);
        assert!((stats.mean_revise - (0.5 + 0.2 + 0.8) / 3.0).abs() < 1e-12);
        let third = 1.0 / 3.0;
        for (bin, expected) in stats.bins.iter().zip([third, 0.0, third, third, 0.0]) {
            assert!((bin - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_file_of_actions_reads_back_and_another_corpus_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("actions.tsv");
        let (a, b) = (Sentence::new(["play", "it"], ["O", "B-x"]), Sentence::new(["stop"], ["O"]));
        let actions = vec![vec![false, true], vec![false]];
        write(&path, &[&a, &b], &actions).unwrap();
        assert_eq!(read(&path, &[&a, &b]).unwrap(), actions);
        assert!(read(&path, &[&b, &a]).unwrap_err().to_string().contains("actions.tsv:1"));
    }
}
