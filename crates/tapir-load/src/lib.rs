//! Load and abuse for a tapir server, for benchmarks and tests.
//!
//! [`Load`] speaks over many streams at a given rate and counts latencies from when a word was
//! due. [`LoadBench`] starts servers of a program and finds the highest rate that they hold.
//! [`Soak`] lets well-behaved clients use a server beside every [`Kind`] of hostile client.
//! [`ServerProcess`] is a server of a program on a free port, ended with the value.

mod bench;
mod connect;
mod error;
mod hostile;
mod http;
mod load;
mod rate_search;
mod script;
mod server_process;
mod soak;
mod speaker;

pub use bench::{BenchReport, Comparison, LoadBench, Saturated};
pub use error::Error;
pub use hostile::{Attacked, Kind};
pub use load::{Load, Measured};
pub use rate_search::RateSearch;
pub use server_process::ServerProcess;
pub use soak::{Bound, Gauges, Minute, Soak, SoakReport, SoakSettings, Totals};
pub use tapir_eval::Percentiles;
