//! What can go wrong, said so that a person can mend it.

use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong when a model is loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The file or directory at fault.
        path: PathBuf,
        /// What the operating system said; not a `source`, since the message says it already.
        cause: std::io::Error,
    },
    /// A file was read but what it says is not usable.
    #[error("{file}: {reason}")]
    Invalid {
        /// The file at fault (a path, or the name of an embedded part).
        file: String,
        /// What is wrong with it, what was expected, and what to do.
        reason: String,
    },
    /// A word was the empty string.
    #[error("an empty word cannot be labelled; leave it out")]
    EmptyWord,
    /// A word was longer than any tokeniser gives.
    #[error(
        "a word of {bytes} bytes is longer than the limit of {limit}; split the text into words first"
    )]
    LongWord {
        /// Its length.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// An id that the vocabulary does not have.
    #[error("word id {id} is not in the vocabulary, which has {ids} ids")]
    UnknownId {
        /// The id.
        id: u32,
        /// How many there are.
        ids: usize,
    },
    /// More words were to be taken back than can be.
    #[error(
        "{asked} words cannot be taken back: {available} can (see `SessionOptions::undo`); nothing was changed"
    )]
    Undo {
        /// How many were asked for.
        asked: usize,
        /// How many are possible.
        available: usize,
    },
    /// A new hypothesis would change labels that were said to be final.
    #[error(
        "the hypothesis differs at word {word}, but {committed} labels are committed already; \
         nothing was changed (a larger window or undo commits later)"
    )]
    Committed {
        /// The first word that differs.
        word: usize,
        /// How many labels are final.
        committed: usize,
    },
    /// The session was given words that are not computed yet.
    #[error(
        "the session has a {work} to compute first: `batch::read` and `batch::revise` do that \
         (see `Session::work`); nothing was changed"
    )]
    Busy {
        /// What comes next.
        work: crate::batch::Work,
    },
    /// The session was finished.
    #[error("the session is finished; call `reset` to start anew")]
    Finished,
    /// A threshold that is none.
    #[error("the threshold is {threshold}, expected 0 (revise at every word) to 1 (never)")]
    Threshold {
        /// The value.
        threshold: f32,
    },
    /// What a recogniser says of a word that is no probability.
    #[error("the stability of a word is {stability}, expected 0 to 1")]
    Heard {
        /// The value.
        stability: f32,
    },
    /// A probability from which on something counts as settled that is none.
    #[error("`settled` is {probability}, expected a probability above 0, such as 0.95")]
    Settled {
        /// The value.
        probability: f32,
    },
    /// The model does not know how far its labels can be trusted.
    #[error(
        "`settled` needs a model that was calibrated: `tapir calibrate` does that, and training does"
    )]
    NotCalibrated,
    /// The model lacks a component that the mode needs.
    #[error("mode {mode:?} needs a {part}, and the model has none")]
    MissingPart {
        /// The mode asked for.
        mode: crate::Mode,
        /// The component.
        part: &'static str,
    },
}

impl Error {
    /// An [`Error::Invalid`] from anything that prints.
    pub fn invalid(file: impl ToString, reason: impl ToString) -> Self {
        Self::Invalid { file: file.to_string(), reason: reason.to_string() }
    }

    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, cause: std::io::Error) -> Self {
        Self::Io { path: path.into(), cause }
    }
}
