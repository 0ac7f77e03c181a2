//! Lines of a file through one large buffer: the only place that splits bytes into lines.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

const BUFFER: usize = 256 * 1024;
/// A longer line is not text: refuse it before it fills the memory.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// A stream of lines without their ends (`\n` or `\r\n`) and without a byte-order mark.
pub(crate) struct Lines {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// What is read and not yet handed out.
    start: usize,
    end: usize,
    finished: bool,
    number: u64,
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
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
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
        let Some((start, end)) = self.advance()? else { return Ok(None) };
        match std::str::from_utf8(&self.buffer[start..end]) {
            Ok(line) => Ok(Some(line)),
            Err(error) => {
                Err(Error::line(&self.path, self.number, not_utf8(&self.buffer[start..end], error)))
            }
        }
    }

    /// The bounds in the buffer of the next line.
    fn advance(&mut self) -> Result<Option<(usize, usize)>> {
        let mut searched = self.start;
        let line_end = loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                break searched + found;
            }
            searched = self.end - self.start;
            if self.finished || !self.fill()? {
                if self.start == self.end {
                    return Ok(None);
                }
                break self.end;
            }
        };
        let mut start = self.start;
        self.start = (line_end + 1).min(self.end);
        if self.number == 0 && self.buffer[start..line_end].starts_with(b"\xEF\xBB\xBF") {
            start += 3;
        }
        self.number += 1;
        let end = if self.buffer[start..line_end].ends_with(b"\r") { line_end - 1 } else { line_end };
        Ok(Some((start, end)))
    }

    /// Moves what is left to the front and reads more behind it. False at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= LONGEST_LINE {
                self.finished = true;
                self.start = self.end;
                let reason = format!("line {} is longer than 64 MB; expected text", self.number + 1);
                return Err(Error::file(&self.path, reason));
            }
            self.buffer.resize(self.end * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.finished = true;
                    return Ok(false);
                }
                Ok(read) => {
                    self.end += read;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.finished = true;
                    self.start = self.end;
                    return Err(Error::io(&self.path, error));
                }
            }
        }
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
