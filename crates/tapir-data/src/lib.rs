//! Everything between files on a disk and batches of numbers.
//!
//! Data flows one way: a [`Task`] names a corpus, [`read`] streams its [`Sentence`]s, a [`Vocabulary`] turns words
//! and labels into numbers, and [`Batches`] hands them to a trainer in an order that a seed fixes.

mod aside;
mod batches;
mod corpus;
mod error;
mod format;
mod lines;
mod random;
mod stats;
mod task;
mod vectors;
mod vocabulary;

pub use aside::Aside;
pub use batches::{Batch, Batches, Epoch, Plan, Position};
pub use corpus::{Corpus, Sentence, Split, Text};
pub use error::{Error, Result};
pub use format::{Column, Columns, Conllu, Format, Options, Reader, SkipBad, Tag, Writer, read};
pub use random::Random;
pub use stats::{Duplicates, Health, Stats};
pub use tapir::Scheme;
pub use task::{Cut, Files, Paths, Score, Task};
pub use vectors::{VectorFormat, VectorOptions, VectorTable};
pub use vocabulary::{FIRST_WORD, Labels, NULL, Numbered, PADDING, UNK, Vocabulary};
