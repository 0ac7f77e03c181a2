//! Storage aligned to the cache line.

/// One cache line of f32: what a panel has for one input.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct LineF32(pub(super) [f32; 16]);

/// One cache line of i8: what a panel has for four inputs, as two rows of 16 pairs.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct LineInt8(pub(super) [[[i8; 2]; 16]; 2]);
