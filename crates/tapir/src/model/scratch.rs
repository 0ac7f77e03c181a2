//! Working memory, one per thread and not per session: thousands of sessions share it.

use std::cell::RefCell;

use crate::kernels;
use crate::pieces::Splitting;

/// Buffers that grow once and are then reused; their content between calls means nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) kernel: kernels::Scratch,
    /// The embedded word x, or the rows of the window.
    pub(crate) x: Vec<f32>,
    /// Inputs that a product takes side by side: [x ; h], [k̃ ; x], [h ; z].
    pub(crate) joined: Vec<f32>,
    pub(crate) gates: Vec<f32>,
    pub(crate) cell: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) scores: Vec<f32>,
    pub(crate) z: Vec<f32>,
    pub(crate) phi: Vec<f32>,
    pub(crate) h: Vec<f32>,
    pub(crate) qkv: Vec<f32>,
    pub(crate) attended: Vec<f32>,
    pub(crate) inner: Vec<f32>,
    /// Where each input of the reviser ends among the rows of x.
    pub(crate) ends: Vec<usize>,
    /// The rows that are first pieces of words.
    pub(crate) firsts: Vec<usize>,
    pub(crate) logits: Vec<f32>,
    /// Logits of the intents of each input of the reviser.
    pub(crate) intents: Vec<f32>,
    pub(crate) splitting: Splitting,
    pub(crate) streams: Streams,
}

/// Rows of several streams side by side, gathered from their tapes for one product. Taken out of
/// the scratch while it is in use, because what computes the product needs the rest of it.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) ids: Vec<u32>,
    /// Pieces of their words, where the first pass reads them.
    pub(crate) pieces: Vec<u32>,
    /// Where the input of each stream ends in `ids`, or its pieces in `pieces`.
    pub(crate) ends: Vec<usize>,
    pub(crate) before: Vec<f32>,
    pub(crate) after: Vec<f32>,
    pub(crate) logits: Vec<f32>,
    pub(crate) intents: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs `f` with this thread's buffers.
pub(crate) fn with<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(f)
}

/// The first `len` values of a buffer, which grows if it must. What they hold is left over from
/// earlier.
pub(crate) fn take(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    &mut buffer[..len]
}
