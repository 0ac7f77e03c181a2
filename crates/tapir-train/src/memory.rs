//! The memory (§3.1): φ of every step, from what was read and what was answered.

use burn::tensor::{Int, Tensor, TensorData, activation::tanh};
use tapir_data::Batch;

use crate::affine::Affine;
use crate::weights::tensor;
use crate::{Dropout, Leaves};

pub(crate) struct Memory {
    /// [labels, H], eq. 2
    z: Affine,
    /// [2H, C], eq. 3, acting on [h ; z]
    phi: Affine,
}

impl Memory {
    pub(crate) fn new(leaves: &Leaves) -> Self {
        Self { z: Affine::new(leaves, "memory.z"), phi: Affine::new(leaves, "memory.phi") }
    }

    /// h [rows, H] and raw logits [rows, labels] of the first pass, time-major, to φ of every entry,
    /// [entries, C].
    pub(crate) fn forward(&self, h: Tensor<2>, logits: Tensor<2>, entries: &Entries) -> Tensor<2> {
        let (h, logits) = match &entries.rewritten {
            Some((rows, revised)) => (
                Tensor::cat(vec![h.clone(), h.select(0, rows.clone())], 0),
                Tensor::cat(vec![logits, revised.clone()], 0),
            ),
            None => (h, logits),
        };
        let z = tanh(self.z.forward(logits));
        tanh(self.phi.forward(Tensor::cat(vec![h, z], 1)))
    }
}

/// What the memory holds at each step of a batch. An entry is made from the first pass's logits
/// when its step is read; a revision makes the last N anew from its own. First come the entries of
/// all rows, then those that revisions have made.
pub(crate) struct Entries {
    /// The entries of the last N steps, oldest first, as they are at each step: [rows, N].
    pub(crate) index: Tensor<2>,
    /// Of the entries that revisions have made: the row of the step, [made], and the logits, [made,
    /// labels].
    rewritten: Option<(Tensor<1, Int>, Tensor<2>)>,
}

impl Entries {
    /// The entries of a time-major batch, N being `memory`.
    pub(crate) fn new(batch: &Batch, memory: usize, labels: usize, dropout: &Dropout) -> Self {
        let device = dropout.device();
        let (sentences, rows) = (batch.sentences, batch.sentences * batch.length);
        let mut index = vec![0.0f32; rows * memory];
        let (mut steps, mut logits) = (Vec::new(), Vec::new());
        for (b, revisions) in batch.revisions.iter().enumerate() {
            // The newest version of each step's entry.
            let mut entries: Vec<usize> = (0..batch.length).map(|t| t * sentences + b).collect();
            let mut revisions = revisions.iter().peekable();
            for t in 0..batch.length {
                let now = &entries[t.saturating_sub(memory)..t];
                let slots = &mut index[(t * sentences + b) * memory..][..now.len()];
                slots.iter_mut().zip(now).for_each(|(slot, entry)| *slot = *entry as f32);
                // A revision at t is seen from the next step on.
                if let Some(revision) = revisions.next_if(|revision| revision.step == t) {
                    let first = t + 1 - revision.logits.len() / labels;
                    for (step, entry) in entries[..=t].iter_mut().enumerate().skip(first) {
                        *entry = rows + steps.len();
                        steps.push((step * sentences + b) as i64);
                    }
                    logits.extend_from_slice(&revision.logits);
                }
            }
        }
        let made = steps.len();
        let rewritten = (made > 0).then(|| {
            let steps = Tensor::from_data(TensorData::new(steps, [made]), device);
            (steps, tensor(logits, [made, labels], device))
        });
        Self { index: tensor(index, [rows, memory], device), rewritten }
    }
}
