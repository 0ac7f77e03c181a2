//! Label words while they arrive, and revise only when a learned policy says so.
//!
//! # The ideas
//!
//! A speech recogniser or a person typing gives words one by one. An application wants a label for
//! each word at once (a slot, an entity, a part of speech), and labels that are right in the end.
//! The two conflict: in *add step to me to the playlist* the first *to* is part of a song's name,
//! and nobody can know that before *me*.
//!
//! This crate runs the two-pass models of the TAPIR paper (Kahardipraja, Madureira and Schlangen,
//! *TAPIR: Learning Adaptive Revision for Incremental Natural Language Understanding with a
//! Two-Pass Model*, Findings of ACL 2023):
//!
//! - The **first pass**, an LSTM, labels the new word from what came before it. It costs the same
//!   at every word, and never changes its mind.
//! - The **reviser**, a Transformer, reads all words so far and labels all of them anew.
//! - A **policy** decides after each word: WRITE keeps the labels as they are, REVISE runs the
//!   reviser. Its value lies between 0 and 1, and a threshold turns it into a decision: at 0 every
//!   word is revised, at 1 none.
//!
//! A [`Model`] is loaded once and shared. Each stream of words is a [`Session`] of it, started with
//! [`SessionOptions`]:
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
//! - An [`Update`] lists the [`Edit`]s of a step: replaying them gives the labels.
//! - **Undo is exact.** After [`Session::revoke`] the session is, to the bit, as if the words had
//!   never been read.
//! - A label is **committed** when neither a revision nor an undo can reach it any more. A session
//!   of any length runs in bounded memory, because what lies behind window and undo is forgotten.
//! - A model with a **delay** of d labels a word when d more have been read.
//! - [`batch`] computes many sessions at once; company changes no bit of an answer.
//! - [`protocol`] is the same as JSON messages, [`Tokenizer`] makes words of text, [`spans`] makes
//!   entities of labels, [`import()`] reads the authors' checkpoints, [`import_encoder`] a fine-tuned
//!   BERT.
//!
//! Files are named as the paper names its ideas: `model/processor.rs`, `model/memory.rs`,
//! `model/controller.rs`, `model/policy.rs`, `model/reviser/`. `batch.rs` is Algorithm 1.

mod affixes;
pub mod batch;
mod bytes;
mod calibration;
mod config;
mod decode;
mod digest;
#[doc(hidden)]
pub mod doctest;
mod edit;
#[cfg(feature = "embedded")]
mod embedded;
mod encoder;
mod error;
mod files;
#[cfg(feature = "store")]
mod find;
pub mod half;
mod heard;
mod history;
mod import;
mod intent;
pub mod kernels;
mod labels;
mod lists;
mod model;
mod parts;
mod pieces;
pub mod protocol;
mod session;
mod session_options;
mod settled;
mod stability;
#[cfg(feature = "store")]
mod store;
mod tape;
mod tensors;
mod tokenizer;
pub mod vectors;
mod vocabulary;
mod word;

pub use affixes::Affixes;
pub use bytes::Bytes;
pub use calibration::{Calibration, Evidence, Logistic};
pub use config::{
    Activation, BertConfig, Config, ControllerConfig, ControllerInput, FORMAT_VERSION, NormKind,
    ProcessorConfig, ReviserConfig, ReviserKind, Scheme,
};
pub use decode::Decoding;
pub use edit::{Action, Edit, Intent, Update};
pub use encoder::{
    Classifier, Encoder, EncoderFiles, EncoderOptions, EncoderTensors, import_encoder,
};
pub use error::{Error, Result};
pub use import::{ImportOptions, import};
pub use labels::{Label, Labels, Span, spans};
pub use model::{Model, Revised};
pub use parts::Parts;
pub use pieces::{PieceRules, WordPieces};
pub use session::{Finish, LONGEST_WORD, Session};
pub use session_options::{FinalPass, Mode, SessionOptions};
pub use settled::Settled;
#[cfg(feature = "store")]
pub use store::amend;
#[doc(hidden)]
pub use tensors::read_header;
pub use tensors::{Precision, TensorWriter};
pub use tokenizer::{Token, Tokenizer};
pub use vectors::WordVectors;
pub use vocabulary::Vocabulary;

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
