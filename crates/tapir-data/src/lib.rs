//! Everything between files on a disk and batches of numbers.
//!
//! Data flows one way: a [`Task`] names a corpus, [`read`] streams its [`Sentence`]s, a [`Vocabulary`] turns words
//! and labels into numbers, and [`Batches`] hands them to a trainer in an order that a seed fixes.

mod aside;
mod corpus;
mod error;
mod format;
mod lines;
mod random;
mod stats;
mod task;

pub use aside::Aside;
pub use corpus::{Corpus, Sentence, Split, Text};
pub use error::{Error, Result};
pub use format::{Column, Columns, Conllu, Format, Options, Reader, SkipBad, Tag, Writer, read};
pub use random::Random;
pub use stats::{Duplicates, Health, Stats};
pub use task::{Cut, Files, Paths, Scheme, Score, Task};
