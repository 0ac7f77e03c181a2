//! The compact form: a safetensors table of rows (F16 or F32), and a file of `word TAB row` lines.

use std::{
    fs,
    path::{Path, PathBuf},
};

use half::f16;
use safetensors::{Dtype, SafeTensors};

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
    let (word, row) =
        line.rsplit_once('\t').ok_or_else(|| format!("no tab in {line:?}; expected word TAB row"))?;
    let row = row.parse().ok().filter(|row| (*row as usize) < rows && !word.is_empty());
    row.map(|row| (word, row)).ok_or_else(|| format!("{line:?}; expected word TAB row, the row below {rows}"))
}

fn read_rows(path: &Path) -> Result<VectorTable> {
    let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
    let broken = |error: safetensors::SafeTensorError| {
        Error::file(path, format!("not safetensors, or cut short ({error})"))
    };
    let tensors = SafeTensors::deserialize(&bytes).map_err(broken)?;
    let found = tensors.iter().find(|(_, tensor)| tensor.shape().len() == 2);
    let (name, tensor) =
        found.ok_or_else(|| Error::file(path, "holds no table; expected a tensor [rows, dim]"))?;
    let dim = tensor.shape()[1];
    let number: fn(&[u8]) -> f32 = match tensor.dtype() {
        Dtype::F16 => |bytes| bytes.first_chunk().map_or(0.0, |bytes| f16::from_le_bytes(*bytes).to_f32()),
        Dtype::F32 => |bytes| bytes.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes)),
        dtype => return Err(Error::file(path, format!("`{name}` is {dtype:?}; expected F16 or F32"))),
    };
    let size = tensor.data().len() / tensor.shape().iter().product::<usize>().max(1);
    let mut table = VectorTable::new(dim);
    for row in tensor.data().chunks_exact((size * dim).max(1)) {
        let vector: Vec<f32> = row.chunks_exact(size).map(number).collect();
        let at = table.rows();
        table.push_row(&vector).map_err(|error| Error::file(path, format!("row {at}: {error}")))?;
    }
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
    if let Some(source) = metadata.metadata().as_ref().and_then(|about| about.get("source")) {
        table.set_notice(source);
    }
    Ok(table)
}
