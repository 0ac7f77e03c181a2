//! Train tapir models: from a corpus to a model directory that `tapir` runs.
//!
//! The four components of the paper in burn, each in a file that is called as in the crate `tapir`
//! and reads the same [`tapir::Config`]: `processor.rs`, `memory.rs`, `controller.rs`, `policy.rs`
//! and `reviser/`; `actions.rs` is the action generator. A [`Preset`] says what to train, [`train`]
//! does every stage that is missing.

mod actions;
mod adamw;
mod affine;
mod checkpoint;
mod compute;
mod controller;
mod dropout;
mod error;
mod evaluate;
#[doc(hidden)]
pub mod forward;
mod input;
mod lessons;
mod lexicon;
mod memory;
mod metrics;
mod ops;
mod policy;
mod preset;
mod pretrained;
mod processor;
mod reviser;
mod roll_in;
mod schedule;
mod shard;
mod spellings;
mod stage;
mod train;
mod tune;
mod weights;

pub use actions::{ActionStats, derive_actions};
pub use adamw::{AdamW, LayerRates, Update};
pub use compute::Compute;
pub use dropout::Dropout;
pub use error::{Error, Result};
pub use evaluate::{Validation, evaluate};
pub use lexicon::Lexicon;
pub use preset::{ActionSource, Generator, Optimisation, Preset, Teaching, Training, WordTable};
pub use pretrained::{Pretrained, ReviserSource};
pub use schedule::Schedule;
pub use shard::{Gradients, Noise, Objective, Shards};
pub use spellings::Spellings;
pub use stage::{Progress, Stage, StageName, StageReport};
pub use train::{Event, PassScores, RunOptions, TrainedRun, train};
pub use tune::{Trial, TuneEvent, TuneOptions, tune};
pub use weights::{Leaves, TrainedRows, Weights};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
