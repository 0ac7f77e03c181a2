//! Label words while they arrive, and revise only when a learned policy says so.
//!
//! This crate runs two-pass models of the TAPIR paper (Kahardipraja, Madureira, Schlangen: *TAPIR: Learning Adaptive Revision
//! for Incremental Natural Language Understanding with a Two-Pass Model*, Findings of ACL 2023): a [`Model`] is loaded once,
//! and each stream of words is a [`Session`] of it.
//!
//! ```
//! # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
//! // let model = tapir::Model::open("runs/snips")?;
//! let mut session = model.session();                       // or session_with(options)
//! let update = session.push("play")?;                      // step, action, policy value, edits
//! let update = session.update(["play", "some", "jazz"])?;  // a recogniser's whole new hypothesis
//! session.revoke(1)?;                                      // it took its last word back
//! let end = session.finish()?;                             // flushes the delay, revises a last time
//! assert_eq!(end.labels.len(), 2);
//! # Ok::<(), tapir::Error>(())
//! ```
//!
//! Each room of the crate is named as the paper names its idea: `model/processor.rs`, `model/memory.rs`,
//! `model/controller.rs`, `model/policy.rs`, `model/reviser/`. `batch.rs` is Algorithm 1.

pub mod batch;
mod bytes;
mod config;
#[doc(hidden)]
pub mod doctest;
mod edit;
#[cfg(feature = "embedded")]
mod embedded;
mod error;
#[cfg(feature = "store")]
mod find;
mod history;
mod import;
pub mod kernels;
mod labels;
mod model;
mod parts;
pub mod protocol;
mod session;
mod session_options;
#[cfg(feature = "store")]
mod store;
mod tape;
mod tensors;
mod tokenizer;
pub mod vectors;
mod vocabulary;
mod word;

pub use bytes::Bytes;
pub use config::{
    Config, ControllerConfig, FORMAT_VERSION, NormKind, ProcessorConfig, ReviserConfig, ReviserKind, Scheme,
};
pub use edit::{Action, Edit, Update};
pub use error::{Error, Result};
pub use import::{ImportOptions, import};
pub use labels::{Label, Labels, Span, spans};
pub use model::Model;
pub use parts::Parts;
pub use session::{Finish, LONGEST_WORD, Session};
pub use session_options::{FinalPass, Mode, SessionOptions};
#[cfg(feature = "store")]
pub use store::amend;
#[doc(hidden)]
pub use tensors::read_header;
pub use tensors::{Precision, TensorWriter};
pub use tokenizer::Tokenizer;
pub use vectors::WordVectors;
pub use vocabulary::Vocabulary;

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
