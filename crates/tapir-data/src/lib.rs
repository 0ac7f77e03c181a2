//! Everything between files on a disk and batches of numbers.
//!
//! Data flows one way: a [`Task`] names a corpus, [`read`] streams its [`Sentence`]s,
//! [`vocabulary()`] and [`label_set`] number its words and labels, [`examples`] turns sentences
//! into those numbers, and [`Batches`] puts them in an order that a seed fixes.

mod atomic_file;
mod batches;
mod corpus;
mod error;
mod fitting_tokenizer;
mod format;
mod lines;
mod random;
mod recombine;
mod scheme;
mod stats;
mod task;
mod text;
mod tokenization;
mod vectors;
mod vocabulary;

pub use atomic_file::{AtomicFile, write_atomically};
pub use batches::{Batch, Batches, Example, Order, Prefix, Revision, Totals, examples};
pub use corpus::{Corpus, Sentence, Split, Text};
pub use error::{Error, Result};
pub use fitting_tokenizer::fitting_tokenizer;
pub use format::{Column, Columns, Conllu, Format, Options, Reader, SkipBad, Tag, Writer, read};
pub use random::Random;
pub use recombine::recombine;
pub use scheme::CorpusScheme;
pub use stats::{Duplicates, Health, Stats};
pub use task::{Cut, Files, Metric, Paths, Task};
pub use text::read_text;
pub use tokenization::Tokenization;
pub use vectors::{VectorFormat, VectorOptions, VectorTable};
pub use vocabulary::{VocabularyOptions, intent_set, label_set, vocabulary};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
