//! Why a server could not be loaded.

use std::path::PathBuf;

/// Why a server could not be loaded. What a server does wrong is not here: that is measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to say.
    #[error("there is no sentence to say")]
    NoSentence,
    /// The program of a server cannot be run.
    #[error("cannot start {}: {cause}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The program of a server ran, and did not listen.
    #[error("{} did not start a server; its first line was {line:?}", program.display())]
    NoServer {
        /// The program.
        program: PathBuf,
        /// What it said instead of its address.
        line: String,
    },
    /// A stream of the load was not taken.
    #[error("stream {index} cannot connect: {cause}")]
    Connect {
        /// Which one.
        index: usize,
        /// Why.
        cause: String,
    },
    /// The model whose labels are expected cannot be run.
    #[error("{0}")]
    Model(#[from] tapir::Error),
    /// This machine does not give what the generator needs.
    #[error("the load generator failed: {0}")]
    Generator(String),
}
