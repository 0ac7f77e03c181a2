//! Names of sessions, and of what belongs to a cell: subjects, streams, the bucket.

use crate::Error;

/// A name that is a token of a NATS subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// ```
    /// use tapir_nats::Name;
    /// assert!(Name::new("call-17").is_ok());
    /// assert!(Name::new("a.b").is_err() && Name::new("*").is_err() && Name::new("").is_err());
    /// ```
    pub fn new(name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if (1..=64).contains(&name.len()) && name.bytes().all(is_token) {
            Ok(Self(name))
        } else {
            Err(Error::Name(name))
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of a cell, which all begin with its own.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    cell: Name,
}

impl Names {
    pub(crate) fn new(cell: Name) -> Self {
        Self { cell }
    }

    pub(crate) fn cell(&self) -> &Name {
        &self.cell
    }

    /// Where a client sends a session's messages.
    pub(crate) fn input(&self, session: &str) -> String {
        format!("{}.in.{session}", self.cell)
    }

    /// Under which subject the broker keeps them.
    pub(crate) fn kept_input(&self, partition: &str, session: &str) -> String {
        format!("{}.in.{partition}.{session}", self.cell)
    }

    /// Where workers put a session's answers. Clients do not listen here: what the broker refuses
    /// passes here, too.
    pub(crate) fn answers(&self, session: &str) -> String {
        format!("{}.answers.{session}", self.cell)
    }

    /// Where the broker repeats the answers that it has kept.
    pub(crate) fn output(&self, session: &str) -> String {
        format!("{}.out.{session}", self.cell)
    }

    pub(crate) fn input_stream(&self) -> String {
        format!("{}-in", self.cell)
    }

    pub(crate) fn answer_stream(&self) -> String {
        format!("{}-answers", self.cell)
    }

    pub(crate) fn bucket(&self) -> String {
        format!("{}-cell", self.cell)
    }
}
