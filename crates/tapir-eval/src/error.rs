//! What can go wrong, said so that a person can mend it.

use std::path::{Path, PathBuf};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong when a model is evaluated or results are read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model could not be run.
    #[error(transparent)]
    Model(#[from] tapir::Error),
    /// The corpus could not be read, or a file not written.
    #[error(transparent)]
    Data(#[from] tapir_data::Error),
    /// A sentence could not be labelled.
    #[error("sentence {sentence}: {cause}")]
    Sentence {
        /// The sentence, counted from 1.
        sentence: usize,
        /// What the model said. Not a `source`, for the message holds it already.
        cause: tapir::Error,
    },
    /// There is nothing to evaluate.
    #[error("{what} is empty: there is nothing to evaluate")]
    Empty {
        /// The split, or what else was given.
        what: String,
    },
    /// The task has labels that the model cannot give.
    #[error(
        "the model does not know {count} of the labels that {task} trains on, such as {examples}; \
         it was trained on {trained}. Give the task that it was trained on, or a model of this one"
    )]
    Labels {
        /// The task's name.
        task: String,
        /// The task that the model says it was trained on.
        trained: String,
        /// How many labels are missing.
        count: usize,
        /// Some of them.
        examples: String,
    },
    /// A sentence is longer than the model reads at once.
    #[error(
        "sentence {sentence} has {words} words, but the model reads at most {limit}, a delay included; \
         set max_length = {limit} or less in the task file to leave such sentences out"
    )]
    TooLong {
        /// The sentence, counted from 1.
        sentence: usize,
        /// Its words.
        words: usize,
        /// The model's limit.
        limit: usize,
    },
    /// An output prefix does not have one label more than the one before.
    #[error(
        "output {step} has {found} labels, expected {step}: an incremental run labels one word more at each step"
    )]
    Ragged {
        /// The output, counted from 1.
        step: usize,
        /// How many labels it has.
        found: usize,
    },
    /// No threshold satisfies a constraint.
    #[error("{0}")]
    Constraint(String),
    /// A results file cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl Error {
    pub(crate) fn results(path: &Path, reason: impl ToString) -> Self {
        Self::Results { path: path.into(), reason: reason.to_string() }
    }
}
