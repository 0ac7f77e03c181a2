#![doc = include_str!("../README.md")]

#[cfg(feature = "corpus")]
mod corpus;
#[cfg(feature = "models")]
mod model;
mod preset;
mod task;
#[cfg(feature = "corpus")]
mod text;

#[cfg(feature = "corpus")]
pub use corpus::{CorpusFiles, SplitFiles, corpora, corpus};
#[cfg(feature = "models")]
pub use model::{ModelFiles, model, models};
pub use preset::{preset, presets};
#[cfg(feature = "models")]
pub use tapir_vectors::{ENGLISH as VECTORS, Vectors};
pub use task::{CHALLENGE, task, tasks};
#[cfg(feature = "corpus")]
pub use text::{text, texts};
