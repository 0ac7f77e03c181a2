//! The compact form: a safetensors table of rows (F16 or F32), and a file of `word TAB row` lines.

use std::path::{Path, PathBuf};

use safetensors::Dtype;

use tapir::Bytes;

use super::{VectorOptions, VectorTable};
use crate::{Error, Result, lines::Lines};

/// Reads both files.
pub(super) fn read(path: &Path, options: &VectorOptions) -> Result<(VectorTable, u64)> {
    let mut table = read_rows(path)?;
    let words = options.words.clone().unwrap_or_else(|| words_beside(path));
    let mut lines = Lines::open(&words)?;
    let mut skipped = 0;
    loop {
        let parsed = match lines.next_line() {
            Ok(None) => return Ok((table, skipped)),
            Ok(Some(line)) => match parse(line, table.rows()) {
                Ok((word, row)) => {
                    table.push_word(word, row);
                    continue;
                }
                Err(reason) => Err(lines.error(reason)),
            },
            Err(error) => Err(error),
        };
        match parsed {
            Err(error) if options.skip_bad && error.is_bad_line() => skipped += 1,
            parsed => parsed?,
        }
    }
}

/// `NAME.words.tsv` for `NAME.safetensors`.
fn words_beside(path: &Path) -> PathBuf {
    path.with_extension("words.tsv")
}

fn parse(line: &str, rows: usize) -> Result<(&str, u32), String> {
    let (word, row) = line
        .rsplit_once('\t')
        .ok_or_else(|| format!("no tab in {line:?}; expected word TAB row"))?;
    let row = row.parse().ok().filter(|row| (*row as usize) < rows && !word.is_empty());
    row.map(|row| (word, row))
        .ok_or_else(|| format!("{line:?}; expected word TAB row, the row below {rows}"))
}

fn read_rows(path: &Path) -> Result<VectorTable> {
    let bytes = Bytes::open(path)?;
    let broken = |error: safetensors::SafeTensorError| {
        Error::file(path, format!("not safetensors, or cut short ({error})"))
    };
    let (header, metadata) = tapir::read_header(&bytes).map_err(broken)?;
    let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let table = tensors.into_iter().find_map(|(name, info)| match info.shape[..] {
        [rows, dim] if rows > 0 && dim > 0 => Some((name, info, rows, dim)),
        _ => None,
    });
    let (name, info, rows, dim) =
        table.ok_or_else(|| Error::file(path, "holds no table; expected a tensor [rows, dim]"))?;
    let number: fn(&[u8]) -> f32 = match info.dtype {
        Dtype::F16 => {
            |bytes| bytes.first_chunk().map_or(0.0, |bytes| tapir::half::from_f16(*bytes))
        }
        Dtype::F32 => |bytes| bytes.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes)),
        dtype => {
            return Err(Error::file(path, format!("`{name}` is {dtype:?}; expected F16 or F32")));
        }
    };
    let data = &bytes[8 + header..][info.data_offsets.0..info.data_offsets.1];
    let width = data.len() / rows;
    let mut table = VectorTable::new(dim);
    for row in data.chunks_exact(width) {
        let vector: Vec<f32> = row.chunks_exact(width / dim).map(number).collect();
        let at = table.rows();
        table.push_row(&vector).map_err(|error| Error::file(path, format!("row {at}: {error}")))?;
    }
    if let Some(source) = metadata.metadata().as_ref().and_then(|about| about.get("source")) {
        table.set_notice(source);
    }
    Ok(table)
}
