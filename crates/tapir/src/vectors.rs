//! Word vectors in the form that ships: one file, read in place, a lookup without allocation.
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
//! A block's first word is `length, bytes`; each other one `shared and new lengths, new bytes`, the
//! two lengths in the halves of a byte, 15 meaning that the rest follows as a variable-length
//! number. That is 1.8 MB for the 514,092 English words, where an `fst` takes 2.9 MB, and no byte
//! of it can make the reader panic.

use std::ops::Range;

use safetensors::Dtype;

use crate::kernels::LARGEST_SCALE;
use crate::tensors::read_header;
use crate::vocabulary::shorten;
use crate::{Bytes, Error, Result};

/// How many words share a block.
pub const BLOCK: usize = 32;
/// The version of the file format that this crate reads and writes.
pub const VERSION: &str = "1";

/// More rows than this cannot be told apart by the bits that a word has for its row.
pub const LARGEST_ROWS: usize = 1 << 24;

/// A table of word vectors: many words, fewer rows.
///
/// A word is looked up as it is, then lower-cased, then Capitalised, then UPPER-cased. See
/// `WordVectors::open`.
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
    /// Reads a file.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("tapir-doc-{}.tapirvec", std::process::id()));
    /// # std::fs::write(&path, tapir_models::VECTORS.bytes).expect("room for a file");
    /// let vectors = tapir::WordVectors::open(&path)?;
    /// let row = vectors.row("Play").expect("a word with a vector");
    /// let mut vector = vec![0.0; vectors.dim()];
    /// vectors.read(row, &mut vector);
    /// assert_eq!(vector.len(), 300);
    /// # std::fs::remove_file(&path).ok();
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
        let (header, metadata) = read_header(all).map_err(|error| {
            invalid(format!("not a file of word vectors, or cut short ({error})"))
        })?;
        let start = header + 8;
        let about = metadata.metadata().clone().unwrap_or_default();
        let about = |key: &str| about.get(key).cloned();
        match about("tapir.vectors") {
            Some(version) if version == VERSION => {}
            Some(version) => {
                let reason = format!(
                    "version {version} of the format; this program reads version {VERSION}"
                );
                return Err(invalid(reason));
            }
            None => {
                let reason =
                    "safetensors, but not word vectors; make them with `tapir vectors build`";
                return Err(invalid(reason.into()));
            }
        }
        let part = |tensor: &str, dtype: Dtype, dims: usize| {
            let info = metadata
                .info(tensor)
                .ok_or_else(|| invalid(format!("lacks the tensor `{tensor}`")))?;
            if info.dtype != dtype || info.shape.len() != dims {
                let reason =
                    format!("`{tensor}` is {:?} {:?}; expected {dtype:?}", info.dtype, info.shape);
                return Err(invalid(reason));
            }
            let range = start + info.data_offsets.0..start + info.data_offsets.1;
            Ok((range, info.shape.clone()))
        };
        let (rows, shape) = part("rows", Dtype::I8, 2)?;
        let (scales, scales_shape) = part("scales", Dtype::F32, 1)?;
        let (words, _) = part("words", Dtype::U8, 1)?;
        let (blocks, blocks_shape) = part("blocks", Dtype::U32, 1)?;
        let (word_rows, _) = part("word_rows", Dtype::U8, 1)?;
        let text =
            |key: &str| about(key).ok_or_else(|| invalid(format!("lacks `{key}` in its metadata")));
        let wrong = |key: &str, text: &str, expected: &str| {
            invalid(format!("`{key}` is {:?}; expected {expected}", shorten(text)))
        };
        let len = text("words")?;
        let len: usize = len.parse().map_err(|_| wrong("words", &len, "a whole number"))?;
        let scale = text("scale")?;
        let scale: f32 = (scale.parse().ok())
            .filter(|scale| (0.0..=f32::MAX).contains(scale))
            .ok_or_else(|| wrong("scale", &scale, "a finite number, 0 or greater"))?;
        if rows.is_empty() || shape[0] > LARGEST_ROWS {
            let reason =
                format!("`rows` has shape {shape:?}; expected 1 to {LARGEST_ROWS} rows of numbers");
            return Err(invalid(reason));
        }
        let bits = bits(shape[0]) as usize;
        let fits = shape[0] == scales_shape[0]
            && len.div_ceil(BLOCK) == blocks_shape[0]
            && len.checked_mul(bits).is_some_and(|bits| bits.div_ceil(8) + 4 == word_rows.len());
        if !fits {
            return Err(invalid(format!(
                "its parts do not agree on {len} words and {} rows",
                shape[0]
            )));
        }
        let found = checksum(all.get(start..).unwrap_or_default());
        if about("checksum").as_deref() != Some(format!("{found:016x}").as_str()) {
            return Err(invalid("damaged: its checksum does not agree; get it again".into()));
        }
        let notice = about("notice").unwrap_or_default();
        let parts = Parts { rows, scales, words, blocks, word_rows };
        let mut vectors = Self {
            dim: shape[1],
            rows: shape[0],
            len,
            scale,
            notice,
            parts,
            bytes,
            heads: Vec::new(),
        };
        let bad = (0..vectors.rows)
            .map(|row| (row, vectors.row_scale(row)))
            .find(|(_, scale)| !(0.0..=LARGEST_SCALE).contains(scale));
        if let Some((row, scale)) = bad {
            let reason =
                format!("the scale of row {row} is {scale}; expected 0 to {LARGEST_SCALE:e}");
            return Err(invalid(reason));
        }
        // A block ends where the next one starts, so that no byte belongs to two words of the
        // table.
        let starts: Option<Vec<usize>> =
            (0..=blocks_shape[0]).map(|block| vectors.start(block)).collect();
        if !starts.is_some_and(|starts| starts.is_sorted()) {
            return Err(invalid("damaged: its blocks of words are not in order".into()));
        }
        let heads = (0..blocks_shape[0]).map(|block| vectors.head(block).map(beginning)).collect();
        vectors.heads =
            Option::ok_or_else(heads, || invalid("damaged: a block of words is cut short".into()))?;
        if !vectors.heads.is_sorted() {
            return Err(invalid("damaged: its words are not in order".into()));
        }
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

    /// The row of a word: as it is, lower-cased, Capitalised, or UPPER-cased, whichever is there
    /// first.
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
            let word: String =
                first.to_uppercase().chain(letters.as_str().to_lowercase().chars()).collect();
            self.exact(word.as_bytes())
        };
        self.exact(lower.as_bytes())
            .or_else(capitalised)
            .or_else(|| self.exact(word.to_uppercase().as_bytes()))
    }

    /// Writes a row's vector into `vector`. Zeros for a row that is not there; no more numbers than
    /// there is room for.
    pub fn read(&self, row: u32, vector: &mut [f32]) {
        vector.fill(0.0);
        let Some((values, scale)) = self.quantised(row) else { return };
        for (number, value) in vector.iter_mut().zip(values) {
            *number = f32::from(*value) * scale;
        }
    }

    /// The vector of a word, found as [`WordVectors::row`] finds it.
    pub fn vector(&self, word: &str) -> Option<Vec<f32>> {
        let row = self.row(word)?;
        let mut vector = vec![0.0; self.dim];
        self.read(row, &mut vector);
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
        let same = self.heads.get(below..)?.partition_point(|head| *head == key);
        let (mut block, mut after) = (below, below + same);
        while block < after {
            let middle = block.midpoint(after);
            if self.head(middle)? > word { after = middle } else { block = middle + 1 }
        }
        let block = block.checked_sub(1)?;
        let place = find_in_block(self.block(block)?, word)?;
        self.word_row(block * BLOCK + place)
    }

    /// A block's first word.
    fn head(&self, block: usize) -> Option<&[u8]> {
        let mut bytes = self.block(block)?;
        let length = take_number(&mut bytes)?;
        take(&mut bytes, length)
    }

    /// The bytes of a block.
    fn block(&self, block: usize) -> Option<&[u8]> {
        self.part(&self.parts.words).get(self.start(block)?..self.start(block + 1)?)
    }

    /// Where a block starts in the words; behind the last one, where they end.
    fn start(&self, block: usize) -> Option<usize> {
        let blocks = self.part(&self.parts.blocks);
        if block * 4 == blocks.len() {
            return Some(self.parts.words.len());
        }
        Some(u32::from_le_bytes(*blocks.get(block * 4..)?.first_chunk()?) as usize)
    }

    /// The row of the word at this place in byte order.
    fn word_row(&self, index: usize) -> Option<u32> {
        let bits = bits(self.rows);
        let at = index.checked_mul(bits as usize)?;
        let window =
            u32::from_le_bytes(*self.part(&self.parts.word_rows).get(at / 8..)?.first_chunk()?);
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
    (usize::BITS - rows.saturating_sub(1).leading_zeros()).clamp(1, LARGEST_ROWS.trailing_zeros())
}

/// The checksum of everything behind the header: FNV-1a, eight bytes at a time.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mix =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum =
        words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

/// The place of a word in a block. Words are in byte order, so most are passed over without looking
/// at their bytes.
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
