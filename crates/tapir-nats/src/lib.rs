//! tapir's streams on NATS JetStream: more of them than one machine holds, exact after one dies.
//!
//! # The ideas
//!
//! A session is a function of its messages. So nothing needs to be replicated but the messages:
//! they lie in a stream of JetStream, and whoever reads them again has the session again, to the
//! bit. A **cell** is a stream of inputs, a stream of answers and a bucket of leases. Its sessions
//! fall into **partitions**, each of which is served by one **worker** at a time ([`lease`]); when
//! that one dies, another goes on.
//!
//! An answer is stored only behind the answer before it (the broker's *expected last subject
//! sequence*), and names the message that it answers. Therefore every message is answered once and
//! in order, whoever believes to be in charge: the answers themselves are the account of what was
//! done, and no clock, lease or acknowledgement is trusted with it.
//!
//! `docs/nats.md` is for those who run it.

mod cell;
mod client;
mod connection;
mod direct;
mod error;
mod gateway;
mod inputs;
pub mod lease;
mod life;
mod metrics;
mod names;
mod partition;
mod port;
mod restore;
mod seat;
mod worker;

pub use cell::CellSettings;
pub use client::{Answered, Answers, Client, Sender};
pub use connection::Connection;
pub use error::Error;
pub use gateway::Gateway;
pub use life::Options;
pub use names::Name;
pub use worker::{Worker, WorkerSettings};

/// The examples of the README run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
