//! Sinusoidal positions: sine on even, cosine on odd places, base 10000.

use burn::tensor::{Device, Tensor};

use super::Sentences;
use crate::weights::tensor;

/// The positions of every row of a batch, [sentences × length, d].
pub(super) fn sinusoidal(sentences: &Sentences, d: usize, device: &Device) -> Tensor<2> {
    let count = sentences.lengths.dims()[0];
    let mut one = Vec::with_capacity(sentences.length * d);
    for position in 0..sentences.length {
        for i in 0..d {
            let angle = position as f64 / 10000f64.powf((i - i % 2) as f64 / d as f64);
            one.push(if i % 2 == 0 { angle.sin() } else { angle.cos() } as f32);
        }
    }
    tensor(one.repeat(count), [count * sentences.length, d], device)
}
