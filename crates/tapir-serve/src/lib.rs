//! A server of tapir's streams: thousands of them over one port.
//!
//! WebSocket for streams, HTTP for whole texts, metrics, health, and a page to watch a stream. The
//! messages are those of [`tapir::protocol`]. Model workers, one per core, take the words of all
//! streams and run them in batches; see `worker.rs`.
//!
//! ```no_run
//! # async fn example() -> Result<(), tapir_serve::Error> {
//! let server = tapir_serve::Server::start(tapir_serve::Settings::default()).await?;
//! println!("http://{}", server.address());
//! server.stop().await;
//! # Ok(())
//! # }
//! ```

mod access;
mod admin;
mod body;
mod clients;
mod connection;
mod engine;
mod error;
mod fair;
mod faults;
mod health;
mod metrics;
mod models;
mod object;
mod openapi;
mod page;
mod remote;
mod server;
mod settings;
mod state;
mod stream;
mod tag;
mod tokenize;
mod worker;

pub use engine::{Engine, EngineSession, Opening};
pub use error::Error;
pub use models::Served;
pub use openapi::openapi;
pub use remote::{Remote, RemoteOpening, RemoteSession};
pub use server::Server;
pub use settings::{Limits, Settings, Tls};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
