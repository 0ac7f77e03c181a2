//! The memory (§3.1): what was read, what was answered, and both together.
//!
//! The paper keeps three caches of the last N steps. Γʰ is the session's tape of processor states.
//! Γᵖ is the tape that is written here: a row holds φ and, because the controller's attention needs
//! it at every later step, the product W_c φ of each controller layer. Γᶻ is not kept: z is needed
//! only while φ is made, and follows from the logits of the step. So φ_j is a function of h_j and
//! of the logits that step j has *now*, which makes rewriting the memory after a revision, and
//! restoring it when words are taken back, one and the same operation.

use super::scratch::{Scratch, take};
use super::{Affine, Controller};
use crate::kernels;
use crate::tensors::Tensors;
use crate::{ControllerConfig, Result};

/// Makes rows of Γᵖ.
pub(crate) struct Memory {
    /// [H, labels], eq. 2
    z: Affine,
    /// [C, 2H], eq. 3, acting on [h ; z]
    phi: Affine,
    hidden: usize,
    size: usize,
}

impl Memory {
    pub(crate) fn load(
        tensors: &Tensors,
        sizes: &ControllerConfig,
        hidden: usize,
        labels: usize,
    ) -> Result<Self> {
        let z = Affine::load(tensors, "memory.z", hidden, labels)?;
        let phi = Affine::load(tensors, "memory.phi", sizes.hidden, 2 * hidden)?;
        Ok(Self { z, phi, hidden, size: sizes.memory })
    }

    /// N.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn bytes(&self) -> usize {
        self.z.bytes() + self.phi.bytes()
    }

    /// Makes `rows` rows of memory from h [rows, H], in `scratch.h`, and logits [rows, labels].
    pub(crate) fn write(
        &self,
        controller: &Controller,
        logits: &[f32],
        rows: usize,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let n = self.hidden;
        let z = take(&mut scratch.z, rows * n);
        self.z.apply(logits, rows, z, &mut scratch.kernel);
        kernels::tanh(z);
        let joined = take(&mut scratch.joined, rows * 2 * n);
        for (row, (h, z)) in
            joined.chunks_exact_mut(2 * n).zip(scratch.h.chunks_exact(n).zip(z.chunks_exact(n)))
        {
            row[..n].copy_from_slice(h);
            row[n..].copy_from_slice(z);
        }
        let size = self.phi.outputs();
        let phi = take(&mut scratch.phi, rows * size);
        self.phi.apply(joined, rows, phi, &mut scratch.kernel);
        kernels::tanh(phi);
        let width = out.len() / rows;
        for (row, phi) in out.chunks_exact_mut(width).zip(phi.chunks_exact(size)) {
            row[..size].copy_from_slice(phi);
        }
        for l in 0..controller.layers() {
            let keys = take(&mut scratch.gates, rows * size);
            controller.keys(l, phi, rows, keys, &mut scratch.kernel);
            for (row, key) in out.chunks_exact_mut(width).zip(keys.chunks_exact(size)) {
                row[(1 + l) * size..(2 + l) * size].copy_from_slice(key);
            }
        }
    }
}
