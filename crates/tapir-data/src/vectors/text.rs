//! Text: a word and its numbers a line, separated by spaces. GloVe as it is; word2vec with a first
//! line `words dim`.

use std::{io::Read, path::Path};

use super::VectorTable;
use crate::{Result, lines::Lines};

/// Reads all lines; with `skip_bad`, counts the bad ones instead of stopping.
pub(super) fn read(
    path: &Path,
    source: impl Read + Send + 'static,
    skip_bad: bool,
) -> Result<(VectorTable, u64)> {
    let mut lines = Lines::new(path, source);
    let mut table = VectorTable::default();
    let mut vector = Vec::new();
    let mut skipped = 0;
    loop {
        let first = lines.number() == 0;
        let parsed = match lines.next_line() {
            Ok(None) => return Ok((table, skipped)),
            Ok(Some(line)) => {
                if first && let Some(dim) = header(line) {
                    table = VectorTable::new(dim);
                    continue;
                }
                parse(line, &mut table, &mut vector).map_err(|reason| lines.error(reason))
            }
            Err(error) => Err(error),
        };
        match parsed {
            Err(error) if skip_bad && error.is_bad_line() => skipped += 1,
            parsed => parsed?,
        }
    }
}

/// The dimension in word2vec's first line.
pub(super) fn header(line: &str) -> Option<usize> {
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<usize>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(_)), Some(Ok(dim)), None) if dim > 1 => Some(dim),
        _ => None,
    }
}

fn parse(line: &str, table: &mut VectorTable, vector: &mut Vec<f32>) -> Result<(), String> {
    let line = line.trim_end_matches([' ', '\t']);
    if line.is_empty() {
        return Ok(());
    }
    if table.dim == 0 {
        // The first line tells how many numbers there are: all that follows its word.
        *table = VectorTable::new(line.split([' ', '\t']).skip(1).count());
    }
    if table.dim == 0 {
        return Err(format!(
            "no number after {line:?}; expected a word and its numbers, separated by spaces"
        ));
    }
    // Numbers are taken from the end, for some of GloVe's words hold spaces.
    vector.clear();
    let mut rest = line;
    while vector.len() < table.dim {
        let (before, number) =
            rest.rsplit_once([' ', '\t']).ok_or_else(|| wrong_count(line, table.dim))?;
        let Ok(value) = number.parse::<f32>() else {
            let found = vector.len();
            return Err(format!(
                "{number:?} is no number, {found} before the end; expected {} numbers",
                table.dim
            ));
        };
        if !value.is_finite() {
            return Err(format!("the number {number:?} is not finite"));
        }
        vector.push(value);
        rest = before;
    }
    vector.reverse();
    let excess = rest.rsplit_once([' ', '\t']).is_some_and(|(_, last)| last.parse::<f32>().is_ok());
    if rest.is_empty() || excess {
        return Err(wrong_count(line, table.dim));
    }
    table.push(rest, vector).map_err(|error| error.to_string())
}

fn wrong_count(line: &str, dim: usize) -> String {
    let word: String = line.chars().take_while(|c| !matches!(c, ' ' | '\t')).take(40).collect();
    let found = line.split([' ', '\t']).count() - 1;
    format!("{found} numbers for the word {word:?}; expected {dim}, as on the first line")
}
