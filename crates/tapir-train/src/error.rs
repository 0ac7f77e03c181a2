//! What can go wrong, said so that a person can mend it.

use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in training.
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
    /// A preset, checkpoint or setting is not usable.
    #[error("{place}: {reason}")]
    Invalid {
        /// The file, key or option at fault.
        place: String,
        /// What is wrong, what was expected, and what to do.
        reason: String,
    },
    /// The loss is not a number any more.
    #[error(
        "{stage}: the loss is {loss} in epoch {epoch}, batch {batch}; a lower `learning_rate` or a `clip` helps. \
         The last checkpoint is intact"
    )]
    Diverged {
        /// The stage.
        stage: &'static str,
        /// Its epoch, from 1.
        epoch: usize,
        /// The batch in that epoch, from 1.
        batch: usize,
        /// The loss.
        loss: f32,
    },
    /// Whoever watches the training has ended it.
    #[error("{stage}: stopped in epoch {epoch}; the next call goes on from the last checkpoint")]
    Stopped {
        /// The stage.
        stage: &'static str,
        /// Its epoch, from 1.
        epoch: usize,
    },
    /// The model could not be written, read or run.
    #[error(transparent)]
    Model(#[from] tapir::Error),
    /// The corpus could not be read.
    #[error(transparent)]
    Data(#[from] tapir_data::Error),
    /// The threshold could not be chosen.
    #[error(transparent)]
    Evaluation(#[from] tapir_eval::Error),
}

impl Error {
    /// An [`Error::Invalid`] from anything that prints.
    pub fn invalid(place: impl ToString, reason: impl ToString) -> Self {
        Self::Invalid { place: place.to_string(), reason: reason.to_string() }
    }

    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl Into<PathBuf>, cause: std::io::Error) -> Self {
        Self::Io { path: path.into(), cause }
    }
}
