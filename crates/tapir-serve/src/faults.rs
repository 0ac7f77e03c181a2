//! Panics on request, for tests of what happens then: with the feature `faults` alone.

use tapir::protocol::Operation;

/// Where a worker can panic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Point {
    /// Before anything is computed.
    Begin,
    /// While a batch is computed.
    Compute,
    /// When an answer is made.
    Answer,
}

/// The word at which a worker panics, if there is one: `WORD-begin`, `WORD-compute`, `WORD-answer`.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    #[cfg(feature = "faults")]
    pub(crate) word: Option<String>,
}

impl Faults {
    /// Panics if a fault was asked for.
    #[cfg(feature = "faults")]
    pub(crate) fn check(&self, point: Point, operation: &Operation) {
        let Some(word) = &self.word else { return };
        let fault = format!("{word}-{point:?}").to_lowercase();
        let asked = match operation {
            Operation::Push(words) | Operation::Update(words) => words.words().contains(&fault),
            _ => false,
        };
        assert!(!asked, "a fault was asked for");
    }

    /// Without the feature there is none.
    #[cfg(not(feature = "faults"))]
    #[allow(clippy::unused_self)]
    pub(crate) fn check(&self, _: Point, _: &Operation) {}
}
