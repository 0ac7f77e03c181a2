//! Evaluate incremental sequence labelling as the TAPIR paper does, and show it.
//!
//! Data flows one way: a [`Dataset`] is what a model is evaluated on, a [`Record`] is what the
//! model did at each word, and every metric derives from that record.
//!
//! ```
//! # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
//! use tapir_eval::{Dataset, Evaluation, Record, Setting};
//! let sentence = tapir_data::Sentence::new(["play", "jazz"], ["O", "B-genre"]);
//! let dataset = Dataset::of(&model, &[sentence])?;
//! let record = Record::make(&model, &dataset, Setting::of(&model).threshold(1.0), || ())?;
//! let evaluation = Evaluation::of(&model, &dataset, &record);
//! assert_eq!(evaluation.incremental.edit_overhead.mean, 0.0); // tau = 1 never revises
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod against;
mod analysis;
mod behaviour;
mod bench;
mod calibrate;
mod choose;
mod correction_time;
mod dataset;
mod edit_overhead;
mod error;
mod evaluation;
mod f1;
mod in_domain;
mod intents;
mod logistic;
mod operations;
mod outputs;
mod paper;
mod plot;
mod provenance;
mod record;
mod relative_correctness;
mod report;
mod results;
mod revision_quality;
mod revisions;
mod stability;
mod streaming;
mod style;
mod summary;
mod sweep;
mod table;
mod tables;
mod trace;

pub use against::Against;
pub use analysis::{Agreement, Analysis, Policy, Time};
pub use behaviour::{Behaviour, BehaviourResults, Failure, KindResults};
pub use bench::{Bench, System};
pub use calibrate::calibrate;
pub use choose::{Choice, Constraint};
pub use correction_time::{correction_time, correction_time_score};
pub use dataset::{Dataset, GoldSentence};
pub use edit_overhead::{edit_overhead, edit_overhead_ahead};
pub use error::{Error, Result};
pub use evaluation::{Actions, Ahead, Evaluation, Incremental, UnknownWords};
pub use f1::{LabelScore, Scores};
pub use in_domain::InDomainScores;
pub use intents::IntentScores;
pub use operations::Operations;
pub use outputs::Outputs;
pub use paper::{Paper, RevisionFigures, Triple, paper};
pub use provenance::Provenance;
pub use record::{Record, SentenceRun, Setting};
pub use relative_correctness::{relative_correctness, relative_correctness_ahead};
pub use report::Report;
pub use results::{ModelInfo, RESULTS_VERSION, Results};
pub use revision_quality::{RevisionKinds, RevisionQuality};
pub use revisions::Revisions;
pub use stability::{Bin, Reliability, SettledAt, StabilityScores};
pub use streaming::Streaming;
pub use summary::{Percentiles, Summary};
pub use sweep::{Sweep, fine_thresholds, sweep, thresholds};
pub use table::Table;
pub use trace::{Cell, Step, Trace};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
