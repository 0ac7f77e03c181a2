//! Label words while they arrive, and revise only when a learned policy says so.

pub mod error;
pub mod kernels;
pub mod vectors;

pub use error::{Error, Result};
pub use vectors::WordVectors;
