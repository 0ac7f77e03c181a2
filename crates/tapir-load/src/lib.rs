//! Load and abuse for a tapir server, for benchmarks and tests.
//!
//! [`Load`] speaks over many streams at a given rate and counts latencies from when a word was
//! due. [`Bench`] starts servers of a program and finds the highest rate that they hold.
//! [`ServerProcess`] is a server of a program on a free port, ended with the value.

mod bench;
mod error;
mod load;
mod percentiles;
mod rate_search;
mod server_process;

pub use bench::{Bench, BenchReport, Saturated};
pub use error::Error;
pub use load::{Load, Measured};
pub use percentiles::Percentiles;
pub use rate_search::RateSearch;
pub use server_process::ServerProcess;
