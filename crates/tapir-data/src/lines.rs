//! Lines of a file through one large buffer: the only place that splits bytes into lines.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// How much is read at once.
const BUFFER: usize = 256 * 1024;
/// A longer line is not text: refuse it before it fills the memory.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// A stream of lines without their ends (`\n` or `\r\n`) and without a byte-order mark.
pub(crate) struct Lines {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    block: Block,
    /// Where the next line starts in the block.
    start: usize,
    /// What is read behind the block: the beginning of a line.
    tail: Vec<u8>,
    finished: bool,
    number: u64,
}

/// Whole lines, checked all at once where they are text, so that a line costs no check of its own.
enum Block {
    Text(String),
    Raw(Vec<u8>),
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw(bytes) => bytes,
        }
    }
}

impl Lines {
    /// The lines of a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(path, open_file(path)?))
    }

    /// The lines of anything that reads; `path` is what errors name.
    pub(crate) fn new(path: &Path, source: impl Read + Send + 'static) -> Self {
        Self {
            path: path.into(),
            source: Box::new(source),
            block: Block::Raw(Vec::new()),
            start: 0,
            tail: Vec::new(),
            finished: false,
            number: 0,
        }
    }

    /// The number of the line that was read last, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// An error about the line that was read last.
    pub(crate) fn error(&self, reason: impl Into<String>) -> Error {
        Error::line(&self.path, self.number, reason)
    }

    /// The next line as text; an error for this line alone when it is not UTF-8.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>> {
        if self.start == self.block.bytes().len() && !self.fill()? {
            return Ok(None);
        }
        let bytes = self.block.bytes();
        let start = self.start;
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |found| start + found);
        self.start = (end + 1).min(bytes.len());
        self.number += 1;
        let end = if bytes[start..end].ends_with(b"\r") { end - 1 } else { end };
        match &self.block {
            Block::Text(text) => Ok(Some(&text[start..end])),
            Block::Raw(bytes) => match std::str::from_utf8(&bytes[start..end]) {
                Ok(line) => Ok(Some(line)),
                Err(error) => Err(self.error(not_utf8(&bytes[start..end], error))),
            },
        }
    }

    /// Reads the next block of whole lines. False at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        let mut bytes = match std::mem::replace(&mut self.block, Block::Raw(Vec::new())) {
            Block::Text(text) => text.into_bytes(),
            Block::Raw(bytes) => bytes,
        };
        let is_first = self.number == 0;
        bytes.clear();
        bytes.append(&mut self.tail);
        self.start = 0;
        let mut searched = 0;
        while !self.finished {
            let before = bytes.len();
            if before >= LONGEST_LINE {
                self.finished = true;
                let reason =
                    format!("line {} is longer than 64 MB; expected text", self.number + 1);
                return Err(Error::file(&self.path, reason));
            }
            let read = self.source.by_ref().take(BUFFER as u64).read_to_end(&mut bytes);
            let read = read.map_err(|error| {
                self.finished = true;
                Error::io(&self.path, error)
            })?;
            self.finished = read < BUFFER;
            if let Some(last) = memchr::memrchr(b'\n', &bytes[searched..])
                && !self.finished
            {
                self.tail.extend_from_slice(&bytes[searched + last + 1..]);
                bytes.truncate(searched + last + 1);
                break;
            }
            searched = bytes.len();
        }
        if is_first && bytes.starts_with(b"\xEF\xBB\xBF") {
            self.start = 3;
        }
        let is_empty = self.start == bytes.len();
        self.block = String::from_utf8(bytes)
            .map_or_else(|error| Block::Raw(error.into_bytes()), Block::Text);
        Ok(!is_empty)
    }
}

/// Opens a file, and says so plainly when it is a directory.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let metadata = file.metadata().map_err(|error| Error::io(path, error))?;
    if metadata.is_dir() {
        return Err(Error::file(path, "is a directory; expected a file"));
    }
    Ok(file)
}

fn not_utf8(line: &[u8], error: std::str::Utf8Error) -> String {
    let at = error.valid_up_to();
    format!(
        "byte 0x{:02X} at column {} is not valid UTF-8; convert the file, for example: iconv -f latin1 -t utf8",
        line[at],
        at + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &'static [u8]) -> Vec<String> {
        let mut lines = Lines::new(Path::new("x"), bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(line.to_owned());
        }
        all
    }

    #[test]
    fn ends_of_lines_and_byte_order_mark_are_taken_off() {
        assert_eq!(lines(b"\xEF\xBB\xBFa\r\nb\n\nc"), ["a", "b", "", "c"]);
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"\n"), [""]);
    }

    #[test]
    fn a_line_longer_than_the_buffer_comes_whole() {
        let long: &'static [u8] = Box::leak(vec![b'x'; 3 * BUFFER + 7].into_boxed_slice());
        assert_eq!(lines(long)[0].len(), 3 * BUFFER + 7);
    }

    #[test]
    fn a_bad_byte_is_named_and_the_next_line_still_comes() {
        let mut lines = Lines::new(Path::new("x"), &b"ok\nab\xFFc\nmore\n"[..]);
        lines.next_line().unwrap();
        let error = lines.next_line().unwrap_err().to_string();
        assert!(error.starts_with("x:2: byte 0xFF at column 3 is not valid UTF-8"), "{error}");
        assert_eq!(lines.next_line().unwrap(), Some("more"));
    }
}
