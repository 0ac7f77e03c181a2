//! The server as its clients see it. One program: each of several would be built and linked anew.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod deadlines;
mod fair;
mod faults;
mod http;
mod life;
mod limits;
mod long;
mod page;
mod stream;
mod support;
