//! Word vectors in the form that ships: one file, memory-mapped, a lookup without allocation.
//!
//! The file is a safetensors container:
//!
//! | tensor | shape | what it holds |
//! | --- | --- | --- |
//! | `rows` | I8 `[rows, dim]` | the vectors, each divided by its scale |
//! | `scales` | F32 `[rows]` | what to multiply each row by |
//! | `words` | U8 | all words in byte order, in blocks of 32 that share prefixes |
//! | `blocks` | U32 `[blocks]` | where each block starts in `words` |
//! | `word_rows` | U8 | the row of each word, in as many bits as the number of rows needs |
//!
//! A block's first word is `length, bytes`; each other one `shared and new lengths, new bytes`, the two lengths in
//! the halves of a byte, 15 meaning that the rest follows as a variable-length number. That is 1.8 MB for the
//! 514,092 English words, where an `fst` takes 2.9 MB, and no byte of it can make the reader panic.

use std::ops::Range;

use safetensors::{Dtype, SafeTensors};

use crate::{Bytes, Error, Result};

/// How many words share a block.
pub const BLOCK: usize = 32;
/// The version of the file format that this crate reads and writes.
pub const VERSION: &str = "1";

/// A table of word vectors: many words, fewer rows.
///
/// A word is looked up as it is, then lower-cased, then Capitalised, then UPPER-cased. See `WordVectors::open`.
pub struct WordVectors {
    bytes: Bytes,
    dim: usize,
    rows: usize,
    len: usize,
    scale: f32,
    notice: String,
    parts: Parts,
    /// How each block's first word begins: what a lookup searches before it touches the file.
    heads: Vec<u64>,
}

/// Where each tensor lies in the bytes.
struct Parts {
    rows: Range<usize>,
    scales: Range<usize>,
    words: Range<usize>,
    blocks: Range<usize>,
    word_rows: Range<usize>,
}

impl WordVectors {
    /// Opens a file by mapping it into memory.
    ///
    /// ```
    /// let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/en_300d.tapirvec");
    /// let vectors = tapir::WordVectors::open(path)?;
    /// let row = vectors.row("Play").expect("a word with a vector");
    /// let mut vector = vec![0.0; vectors.dim()];
    /// vectors.read(row, &mut vector);
    /// assert_eq!(vector.len(), 300);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    #[cfg(feature = "store")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(Bytes::open(path)?, &path.display().to_string())
    }

    /// Reads the content of such a file; `name` is what errors call it.
    pub fn from_bytes(bytes: impl Into<Bytes>, name: &str) -> Result<Self> {
        let bytes = bytes.into();
        let invalid = |reason: String| Error::invalid(name, reason);
        let all = &*bytes;
        let (header, metadata) = SafeTensors::read_metadata(all)
            .map_err(|error| invalid(format!("not a file of word vectors, or cut short ({error})")))?;
        let start = header + 8;
        let about = metadata.metadata().clone().unwrap_or_default();
        let about = |key: &str| about.get(key).cloned();
        match about("tapir.vectors") {
            Some(version) if version == VERSION => {}
            Some(version) => {
                let reason = format!("version {version} of the format; this program reads version {VERSION}");
                return Err(invalid(reason));
            }
            None => {
                let reason = "safetensors, but not word vectors; make them with `tapir vectors build`";
                return Err(invalid(reason.into()));
            }
        }
        let part = |tensor: &str, dtype: Dtype, dims: usize| {
            let info =
                metadata.info(tensor).ok_or_else(|| invalid(format!("lacks the tensor `{tensor}`")))?;
            if info.dtype != dtype || info.shape.len() != dims {
                let reason = format!("`{tensor}` is {:?} {:?}; expected {dtype:?}", info.dtype, info.shape);
                return Err(invalid(reason));
            }
            let range = start + info.data_offsets.0..start + info.data_offsets.1;
            if all.get(range.clone()).is_none() {
                return Err(invalid(format!("cut short: `{tensor}` ends beyond the file")));
            }
            Ok((range, info.shape.clone()))
        };
        let (rows, shape) = part("rows", Dtype::I8, 2)?;
        let (scales, scales_shape) = part("scales", Dtype::F32, 1)?;
        let (words, _) = part("words", Dtype::U8, 1)?;
        let (blocks, blocks_shape) = part("blocks", Dtype::U32, 1)?;
        let (word_rows, _) = part("word_rows", Dtype::U8, 1)?;
        let number = |key: &str| {
            let text = about(key).ok_or_else(|| invalid(format!("lacks `{key}` in its metadata")))?;
            text.parse::<f64>().map_err(|_| invalid(format!("`{key}` is {text:?}; expected a number")))
        };
        let len = number("words")? as usize;
        let bits = bits(shape[0]) as usize;
        let fits = shape[0] == scales_shape[0]
            && len.div_ceil(BLOCK) == blocks_shape[0]
            && len.checked_mul(bits).is_some_and(|bits| bits.div_ceil(8) + 4 == word_rows.len());
        if !fits {
            return Err(invalid(format!("its parts do not agree on {len} words and {} rows", shape[0])));
        }
        let found = checksum(all.get(start..).unwrap_or_default());
        if about("checksum").as_deref() != Some(format!("{found:016x}").as_str()) {
            return Err(invalid("damaged: its checksum does not agree; get it again".into()));
        }
        let scale = number("scale")? as f32;
        let notice = about("notice").unwrap_or_default();
        let parts = Parts { rows, scales, words, blocks, word_rows };
        let mut vectors =
            Self { dim: shape[1], rows: shape[0], len, scale, notice, parts, bytes, heads: Vec::new() };
        let heads = (0..blocks_shape[0]).map(|block| vectors.head(block).map(beginning)).collect();
        vectors.heads =
            Option::ok_or_else(heads, || invalid("damaged: a block of words is cut short".into()))?;
        Ok(vectors)
    }

    /// The whole file.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How many numbers a vector has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows the table has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many words have a row.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Does no word have a row?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The standard deviation of all numbers in the table: divide by it before use.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Where the vectors come from, and under which licence.
    pub fn notice(&self) -> &str {
        &self.notice
    }

    /// The row of a word: as it is, lower-cased, Capitalised, or UPPER-cased, whichever is there first.
    pub fn row(&self, word: &str) -> Option<u32> {
        self.exact(word.as_bytes()).or_else(|| {
            let mut buffer = [0; 64];
            match buffer.get_mut(..word.len()).filter(|_| word.is_ascii()) {
                Some(form) => self.ascii_forms(word.as_bytes(), form),
                None => self.unicode_forms(word),
            }
        })
    }

    fn ascii_forms(&self, word: &[u8], form: &mut [u8]) -> Option<u32> {
        let find = |form: &[u8]| (form != word).then(|| self.exact(form)).flatten();
        form.copy_from_slice(word);
        form.make_ascii_lowercase();
        find(form)
            .or_else(|| {
                form.first_mut()?.make_ascii_uppercase();
                find(form)
            })
            .or_else(|| {
                form.make_ascii_uppercase();
                find(form)
            })
    }

    fn unicode_forms(&self, word: &str) -> Option<u32> {
        let lower = word.to_lowercase();
        let capitalised = || {
            let mut letters = word.chars();
            let first = letters.next()?;
            let word: String = first.to_uppercase().chain(letters.as_str().to_lowercase().chars()).collect();
            self.exact(word.as_bytes())
        };
        self.exact(lower.as_bytes())
            .or_else(capitalised)
            .or_else(|| self.exact(word.to_uppercase().as_bytes()))
    }

    /// Writes a row's vector into `vector`. Zeros for a row that is not there; no more numbers than there is room for.
    pub fn read(&self, row: u32, vector: &mut [f32]) {
        vector.fill(0.0);
        let Some((values, scale)) = self.quantised(row) else { return };
        for (number, value) in vector.iter_mut().zip(values) {
            *number = f32::from(*value) * scale;
        }
    }

    /// The vector of a word, found as [`WordVectors::row`] finds it.
    pub fn vector(&self, word: &str) -> Option<Vec<f32>> {
        let mut vector = vec![0.0; self.dim];
        self.read(self.row(word)?, &mut vector);
        Some(vector)
    }

    /// A row as it is stored, and its scale: the vector is their product.
    pub fn quantised(&self, row: u32) -> Option<(&[i8], f32)> {
        let row = usize::try_from(row).ok().filter(|row| *row < self.rows)?;
        let values = self.part(&self.parts.rows).get(row * self.dim..(row + 1) * self.dim)?;
        Some((bytemuck::cast_slice(values), self.row_scale(row)))
    }

    /// Every word and its row, in byte order.
    pub fn words(&self) -> impl Iterator<Item = (String, u32)> + '_ {
        let mut word = Vec::new();
        let mut rest: &[u8] = &[];
        (0..self.len).map_while(move |index| {
            if index % BLOCK == 0 {
                rest = self.block(index / BLOCK)?;
                word.clear();
                let length = take_number(&mut rest)?;
                word.extend_from_slice(take(&mut rest, length)?);
            } else {
                let (shared, new) = take_lengths(&mut rest)?;
                word.truncate(shared);
                word.extend_from_slice(take(&mut rest, new)?);
            }
            Some((String::from_utf8_lossy(&word).into_owned(), self.word_row(index)?))
        })
    }

    fn row_scale(&self, row: usize) -> f32 {
        let scales = self.part(&self.parts.scales);
        scales
            .get(row * 4..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
    }

    /// The row of exactly this word.
    fn exact(&self, word: &[u8]) -> Option<u32> {
        let key = beginning(word);
        let below = self.heads.partition_point(|head| *head < key);
        // Few heads begin as the word does: only those are compared whole.
        let same = self.heads.get(below..)?.iter().take_while(|head| **head == key).count();
        let mut after = below + same;
        while after > below && self.head(after - 1)? > word {
            after -= 1;
        }
        let block = after.checked_sub(1)?;
        let place = find_in_block(self.block(block)?, word)?;
        self.word_row(block * BLOCK + place)
    }

    /// A block's first word.
    fn head(&self, block: usize) -> Option<&[u8]> {
        let mut bytes = self.block(block)?;
        let length = take_number(&mut bytes)?;
        take(&mut bytes, length)
    }

    /// The bytes from a block's start.
    fn block(&self, block: usize) -> Option<&[u8]> {
        let start = self.part(&self.parts.blocks).get(block * 4..)?.first_chunk()?;
        self.part(&self.parts.words).get(u32::from_le_bytes(*start) as usize..)
    }

    /// The row of the word at this place in byte order.
    fn word_row(&self, index: usize) -> Option<u32> {
        let bits = bits(self.rows);
        let at = index.checked_mul(bits as usize)?;
        let window = u32::from_le_bytes(*self.part(&self.parts.word_rows).get(at / 8..)?.first_chunk()?);
        let row = (window >> (at % 8)) & ((1 << bits) - 1);
        (index < self.len && (row as usize) < self.rows).then_some(row)
    }

    fn part(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }
}

impl std::fmt::Debug for WordVectors {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "WordVectors({} words, {} rows of {})", self.len, self.rows, self.dim)
    }
}

/// How many bits a row's number takes. At most 24, so that one always lies within four bytes.
pub fn bits(rows: usize) -> u32 {
    (usize::BITS - rows.saturating_sub(1).leading_zeros()).clamp(1, 24)
}

/// The checksum of everything behind the header: FNV-1a, eight bytes at a time.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

/// The place of a word in a block. Words are in byte order, so most are passed over without looking at their bytes.
fn find_in_block(mut block: &[u8], word: &[u8]) -> Option<usize> {
    let length = take_number(&mut block)?;
    let head = take(&mut block, length)?;
    // How much of `word` the current word of the block begins with.
    let mut matched = common(head, word);
    if matched == word.len() && matched == head.len() {
        return Some(0);
    }
    for place in 1..BLOCK {
        let (shared, new) = take_lengths(&mut block)?;
        if shared > matched {
            block = block.get(new..)?;
            continue;
        }
        if shared < matched {
            return None;
        }
        let new = take(&mut block, new)?;
        let wanted = word.get(matched..)?;
        let more = common(new, wanted);
        if more == wanted.len() && more == new.len() {
            return Some(place);
        }
        if new.get(more) > wanted.get(more) {
            return None;
        }
        matched += more;
    }
    None
}

/// The first eight bytes as a number that sorts as they do.
fn beginning(word: &[u8]) -> u64 {
    match word.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            word.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
                << (64 - 8 * word.len()).min(63)
        }
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let [byte] = *take(bytes, 1)? else { return None };
        number |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

/// How much a word shares with the one before it, and how many bytes follow.
#[inline]
fn take_lengths(bytes: &mut &[u8]) -> Option<(usize, usize)> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    let (mut shared, mut new) = (usize::from(byte >> 4), usize::from(byte & 15));
    if shared == 15 {
        shared += take_number(bytes)?;
    }
    if new == 15 {
        new += take_number(bytes)?;
    }
    Some((shared, new))
}
