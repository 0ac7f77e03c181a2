//! What can go wrong, said so that a person can mend it.

use std::path::PathBuf;

/// Everything that can go wrong between tapir and NATS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No server could be reached, or it refused us.
    #[error("{url}: {cause}; {hint}")]
    Connect {
        /// Where, without a password.
        url: String,
        /// What the client said.
        cause: String,
        /// What to do.
        hint: &'static str,
    },
    /// The server let us in, but not to what is needed.
    #[error(
        "cannot {what}: the server says `{refusal}`; docs/nats.md (Settings) has what workers, \
         gateways and clients must be allowed"
    )]
    Forbidden {
        /// What we were about to do.
        what: String,
        /// What the server said.
        refusal: String,
    },
    /// A file of credentials or TLS.
    #[error("{path}: {cause}", path = path.display())]
    File {
        /// The file at fault.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// JetStream refused something, or did not answer.
    #[error(
        "cannot {what}: {cause}; is JetStream on (`nats-server -js`), and have its nodes a leader?"
    )]
    JetStream {
        /// What was asked of it.
        what: String,
        /// What it said.
        cause: String,
    },
    /// The cell was made with other settings than ours.
    #[error(
        "the cell `{cell}` was made with {what} {theirs}, and this program was told {ours}; use \
         theirs, or a cell of another name (--cell)"
    )]
    Disagreement {
        /// Its name.
        cell: String,
        /// Which setting.
        what: &'static str,
        /// What the cell has.
        theirs: String,
        /// What we have.
        ours: String,
    },
    /// A setting that cannot be.
    #[error("{0}")]
    Settings(String),
    /// A session's name that is not a token of NATS.
    #[error(
        "`{0}` is no name of a session: 1 to 64 of the characters A-Z a-z 0-9 - _ are expected"
    )]
    Name(String),
    /// A message that the broker did not take.
    #[error("the message was not taken: {0}")]
    Refused(String),
    /// A session that has as many messages as the cell keeps of one.
    #[error(
        "the message was not taken: {0}; begin another session, and reset or close them now and then"
    )]
    Full(String),
    /// An answer that is none of ours.
    #[error("an answer of session `{session}` cannot be read: {cause}")]
    Answer {
        /// Whose.
        session: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Models or threads.
    #[error(transparent)]
    Engine(#[from] tapir_serve::Error),
}

impl Error {
    /// An [`Error::JetStream`] from anything that prints.
    pub(crate) fn jetstream(what: impl Into<String>, cause: impl ToString) -> Self {
        Self::JetStream { what: what.into(), cause: cause.to_string() }
    }
}
