//! What can go wrong, said so that a person can mend it.

use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong when a model is loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory at fault.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file was read but what it says is not usable.
    #[error("{file}: {reason}")]
    Invalid {
        /// The file at fault (a path, or the name of an embedded part).
        file: String,
        /// What is wrong with it, what was expected, and what to do.
        reason: String,
    },
}

impl Error {
    /// An [`Error::Invalid`] from anything that prints.
    pub fn invalid(file: impl ToString, reason: impl ToString) -> Self {
        Self::Invalid { file: file.to_string(), reason: reason.to_string() }
    }

    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }
}
