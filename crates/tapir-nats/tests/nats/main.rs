//! Streams on a real nats-server. One program: each of several would be built and linked anew.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cell;
mod credentials;
mod gateway;
mod hostile;
mod kernels;
#[path = "../support/mod.rs"]
mod support;
