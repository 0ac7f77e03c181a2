//! Everything between files on a disk and batches of numbers.
//!
//! Data flows one way: a [`Task`] names a corpus, [`read`] streams its [`Sentence`]s, [`examples`] turns words and labels
//! into the numbers of a model's [`Vocabulary`](tapir::Vocabulary) and [`Labels`](tapir::Labels), and [`Batches`] puts
//! them in an order that a seed fixes.

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

pub use aside::Aside;
pub use batches::{Batch, Batches, Example, Order, Prefix, examples};
pub use corpus::{Corpus, Sentence, Split, Text};
pub use error::{Error, Result};
pub use format::{Column, Columns, Conllu, Format, Options, Reader, SkipBad, Tag, Writer, read};
pub use random::Random;
pub use stats::{Duplicates, Health, Stats};
pub use tapir::Scheme;
pub use task::{Cut, Files, Paths, Score, Task};
pub use vectors::{VectorFormat, VectorOptions, VectorTable};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
