//! Dropout with random numbers of our own, so that a resumed run draws the same ones.

use burn::tensor::{Device, Tensor};
use tapir_data::Random;

use crate::weights::tensor;

/// Sets values to 0 with probability `rate` and scales the others up, or does nothing outside
/// training.
pub struct Dropout {
    rate: f64,
    random: Random,
    device: Device,
}

impl Dropout {
    /// For training.
    pub fn new(rate: f64, random: Random, device: &Device) -> Self {
        Self { rate, random, device: device.clone() }
    }

    /// Does nothing.
    pub fn none(device: &Device) -> Self {
        Self::new(0.0, Random::new(0), device)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.rate > 0.0
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// What to multiply by: 0, or 1 / (1 - rate).
    pub(crate) fn mask(&mut self, shape: [usize; 2]) -> Tensor<2> {
        let threshold = (self.rate * 65536.0).round() as u16;
        let keep = (1.0 / (1.0 - self.rate)) as f32;
        let mut values = vec![0.0; shape[0] * shape[1]];
        for chunk in values.chunks_mut(4) {
            let mut bits = self.random.next_u64();
            for value in chunk {
                *value = if bits as u16 >= threshold { keep } else { 0.0 };
                bits >>= 16;
            }
        }
        tensor(values, shape, &self.device)
    }

    /// x: [rows, size].
    pub(crate) fn apply(&mut self, x: Tensor<2>) -> Tensor<2> {
        if !self.is_active() {
            return x;
        }
        let mask = self.mask(x.dims());
        x * mask
    }
}
