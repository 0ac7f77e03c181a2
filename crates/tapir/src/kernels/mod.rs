//! The arithmetic of the models: packed products and vectorised activations.
//!
//! Each kernel is written once, over vectors of 16 lanes, and compiled for AVX-512 and for AVX2 with
//! FMA (with and without VNNI), for NEON (with and without dot products and products of matrices),
//! for WebAssembly's simd128 (where that is a target feature), and for any machine. [`isa`] says
//! which one runs; `TAPIR_KERNELS` forces one of [`Isa`] by its name. On one machine with one
//! instruction set every result is reproducible to the bit, and does not depend on what is computed
//! beside it.
//!
//! Slices of the wrong length are errors of the program, and panic.

#![allow(
    unsafe_code,
    reason = "vector instructions and the pointers they read; nowhere else in this crate"
)]
#![allow(
    clippy::inline_always,
    reason = "a kernel is compiled with the features of the function it is inlined into"
)]
#![allow(clippy::needless_range_loop, reason = "indices of tiles are clearer than nested zips")]

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod isa;
mod lines;
mod math;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
mod neon_dotprod;
#[cfg(target_arch = "aarch64")]
mod neon_i8mm;
mod norm;
mod pairs;
mod portable;
mod product_f32;
mod product_int8;
mod simd;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
mod tiles;
mod vectors;

pub(crate) use attention::attention;
pub use isa::{Isa, isa};
pub use matrix::LARGEST_SCALE;
// The benchmark of the kernels measures products by themselves.
#[doc(hidden)]
pub use matrix::{Matrix, Scratch, quantize_rows};
pub(crate) use norm::layer_norm;
pub use vectors::{axpy, dot, gelu, gelu_tanh, sigmoid, softmax, tanh};
pub(crate) use vectors::{gates, relu};

/// Panels to the tile with 1, 2, … rows where there are 32 registers of 16 lanes: at least eight
/// sums in flight, and at most 24.
const WIDE_PANELS: [usize; simd::MOST_ROWS] = [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2];
