//! What can go wrong with data, said so that a person can mend it.

use std::path::{Path, PathBuf};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong between files and batches.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The file or directory at fault.
        path: PathBuf,
        /// What the operating system said. Not a `source`, for the message holds it already.
        cause: std::io::Error,
    },
    /// One line of a file is wrong. A reader goes on with the next sentence.
    #[error("{path}:{line}: {reason}", path = path.display())]
    Line {
        /// The file at fault.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The value at fault, what was expected, and what to do.
        reason: String,
    },
    /// A whole file or directory is not usable.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// The file or directory at fault.
        path: PathBuf,
        /// What is wrong, what was expected, and what to do.
        reason: String,
    },
    /// A sentence cannot be said in the format that it should be written in.
    #[error("{path}: sentence {sentence}: {reason}", path = path.display())]
    Unwritable {
        /// The file being written.
        path: PathBuf,
        /// The sentence, counted from 1.
        sentence: u64,
        /// The value at fault and what to do.
        reason: String,
    },
    /// A setting, such as the name of a format or a task, is not known.
    #[error("{0}")]
    Setting(String),
    /// Word vectors in the shipped form are not usable.
    #[error(transparent)]
    Vectors(#[from] tapir::Error),
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, cause: std::io::Error) -> Self {
        Self::Io { path: path.into(), cause }
    }

    /// An [`Error::File`] about `path`.
    pub fn file(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::File { path: path.into(), reason: reason.into() }
    }

    /// An [`Error::Line`] about line `line` of `path`.
    pub fn line(path: &Path, line: u64, reason: impl Into<String>) -> Self {
        Self::Line { path: path.into(), line, reason: reason.into() }
    }

    /// Can a reader go on after this error? True for a bad line, false for a bad file.
    pub fn is_bad_line(&self) -> bool {
        matches!(self, Self::Line { .. } | Self::Unwritable { .. })
    }
}
