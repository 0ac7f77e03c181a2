//! The program, command by command. One program of tests: each of several would be built and linked
//! anew.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "train")]
mod actions;
mod anywhere;
mod data;
#[cfg(feature = "eval")]
mod first_hour;
#[cfg(feature = "eval")]
mod measure;
mod model;
mod program;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod stream;
mod support;
mod tag;
#[cfg(feature = "train")]
mod train;
mod vectors;
