//! The writer of the form that ships. [`tapir::vectors`] says how it is laid out, and reads it.

use std::{io::Write as _, path::Path};

use serde_json::json;
use tapir::vectors::{BLOCK, VERSION, bits, checksum};

use super::VectorTable;
use crate::{AtomicFile, Error, Result, Text};

impl VectorTable {
    /// Writes the form that ships; an existing file is an error unless `force`.
    ///
    /// ```
    /// let mut table = tapir_data::VectorTable::new(2);
    /// table.push("play", &[1.0, -0.5])?;
    /// let vectors = tapir::WordVectors::from_bytes(table.to_bytes()?, "play")?;
    /// assert_eq!(vectors.row("PLAY"), Some(0));
    /// # Ok::<(), tapir_data::Error>(())
    /// ```
    pub fn write(&self, path: &Path, force: bool) -> Result<()> {
        let mut out = AtomicFile::create(path, force)?;
        out.write_all(&self.to_bytes()?).map_err(|error| Error::io(path, error))?;
        out.commit()
    }

    /// The bytes of such a file. The same table always gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut words = self.words.clone();
        words.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        words.dedup_by(|next, first| next.0 == first.0);
        if let Some((word, row)) = words.iter().find(|(_, row)| *row as usize >= self.rows()) {
            let reason =
                format!("the word {word:?} has row {row}; expected one below {}", self.rows());
            return Err(Error::Setting(reason));
        }
        let (blocks, packed) = pack_words(&words);
        if u32::try_from(packed.len()).is_err() {
            let reason = format!("words of {} bytes; expected less than 4 GB", packed.len());
            return Err(Error::Setting(reason));
        }
        let parts: [(&str, &str, Vec<usize>, Vec<u8>); 5] = [
            (
                "scales",
                "F32",
                vec![self.rows()],
                self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect(),
            ),
            (
                "blocks",
                "U32",
                vec![blocks.len()],
                blocks.iter().flat_map(|start| start.to_le_bytes()).collect(),
            ),
            (
                "rows",
                "I8",
                vec![self.rows(), self.dim],
                self.rows.iter().map(|value| value.cast_unsigned()).collect(),
            ),
            ("words", "U8", vec![packed.len()], packed),
            (
                "word_rows",
                "U8",
                vec![packed_rows_len(words.len(), self.rows())],
                pack_rows(&words, self.rows()),
            ),
        ];
        let data: Vec<u8> = parts.iter().flat_map(|(.., bytes)| bytes).copied().collect();
        let mut header = json!({"__metadata__": {
            "tapir.vectors": VERSION,
            "words": words.len().to_string(),
            "dim": self.dim.to_string(),
            "scale": self.scale().to_string(),
            "notice": self.notice,
            "checksum": format!("{:016x}", checksum(&data)),
        }});
        let mut start = 0;
        for (name, dtype, shape, bytes) in &parts {
            header[name] = json!({"dtype": dtype, "shape": shape, "data_offsets": [start, start + bytes.len()]});
            start += bytes.len();
        }
        let mut header = header.to_string();
        while !header.len().is_multiple_of(8) {
            header.push(' ');
        }
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(&data);
        Ok(file)
    }
}

/// Words in byte order, in blocks in which each says only what differs from the one before; and
/// where blocks start.
fn pack_words(words: &[(Text, u32)]) -> (Vec<u32>, Vec<u8>) {
    let mut blocks = Vec::with_capacity(words.len().div_ceil(BLOCK));
    let mut bytes = Vec::new();
    for block in words.chunks(BLOCK) {
        blocks.push(bytes.len() as u32);
        let mut previous: &[u8] = &[];
        for (place, (word, _)) in block.iter().enumerate() {
            let word = word.as_bytes();
            if place == 0 {
                put_number(word.len(), &mut bytes);
                bytes.extend_from_slice(word);
            } else {
                let shared = previous.iter().zip(word).take_while(|(a, b)| a == b).count();
                put_lengths(shared, word.len() - shared, &mut bytes);
                bytes.extend_from_slice(&word[shared..]);
            }
            previous = word;
        }
    }
    (blocks, bytes)
}

fn put_lengths(shared: usize, new: usize, bytes: &mut Vec<u8>) {
    bytes.push((shared.min(15) << 4 | new.min(15)) as u8);
    for length in [shared, new] {
        if length >= 15 {
            put_number(length - 15, bytes);
        }
    }
}

fn put_number(mut number: usize, bytes: &mut Vec<u8>) {
    while number >= 128 {
        bytes.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The rows of words, packed, with room for a reader that always takes four bytes.
fn pack_rows(words: &[(Text, u32)], rows: usize) -> Vec<u8> {
    let bits = bits(rows) as usize;
    let mut packed = vec![0; packed_rows_len(words.len(), rows)];
    for (index, (_, row)) in words.iter().enumerate() {
        let at = index * bits;
        for (byte, value) in packed[at / 8..].iter_mut().zip((row << (at % 8)).to_le_bytes()) {
            *byte |= value;
        }
    }
    packed
}

fn packed_rows_len(words: usize, rows: usize) -> usize {
    (words * bits(rows) as usize).div_ceil(8) + 4
}
