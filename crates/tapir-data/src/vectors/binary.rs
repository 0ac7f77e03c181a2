//! word2vec's binary form: a line `words dim`, then for each word its bytes, a space, and `dim`
//! little-endian floats.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
};

use super::{VectorTable, text};
use crate::{Error, Result};

/// More numbers than any table has: a header that claims it is not one.
const LARGEST_DIM: usize = 1 << 16;
const LONGEST_WORD: u64 = 1 << 16;

pub(super) fn looks_like(sample: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b'\n', sample) else { return false };
    let header = std::str::from_utf8(&sample[..end]).ok().and_then(text::header);
    let rest = &sample[end + 1..];
    let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
    header.is_some_and(|dim| {
        !std::str::from_utf8(line).is_ok_and(|line| {
            line.split_ascii_whitespace()
                .rev()
                .take(dim.min(4))
                .all(|number| number.parse::<f32>().is_ok())
        })
    })
}

/// Reads all words. Nothing is allocated because the header says so.
pub(super) fn read(path: &Path, source: impl Read) -> Result<VectorTable> {
    let mut source = BufReader::with_capacity(1 << 18, source);
    let io = |error| Error::io(path, error);
    let mut header = Vec::new();
    source.by_ref().take(64).read_until(b'\n', &mut header).map_err(io)?;
    let numbers: Option<Vec<usize>> = std::str::from_utf8(&header)
        .ok()
        .and_then(|line| line.split_ascii_whitespace().map(|number| number.parse().ok()).collect());
    let Some(&[count, dim @ 1..=LARGEST_DIM]) = numbers.as_deref() else {
        let reason =
            "its first line is not `words dim`, two numbers; expected word2vec's binary form";
        return Err(Error::file(path, reason));
    };
    let mut table = VectorTable::new(dim);
    let (mut word, mut bytes, mut vector) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=count {
        word.clear();
        source.by_ref().take(LONGEST_WORD).read_until(b' ', &mut word).map_err(io)?;
        bytes.clear();
        source.by_ref().take(4 * dim as u64).read_to_end(&mut bytes).map_err(io)?;
        if word.pop() != Some(b' ') || bytes.len() != 4 * dim {
            let reason =
                format!("ends within word {number}; expected {count} words of {dim} numbers");
            return Err(Error::file(path, reason));
        }
        let name = word.strip_prefix(b"\n").unwrap_or(&word);
        let name = String::from_utf8_lossy(name);
        vector.clear();
        vector.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        table
            .push(&name, &vector)
            .map_err(|error| Error::file(path, format!("word {number}, {name:?}: {error}")))?;
    }
    Ok(table)
}
