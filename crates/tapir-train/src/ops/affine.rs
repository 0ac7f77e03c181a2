//! y = x W + b as one node.
//!
//! Burn's own product clears its output and copies it to other memory before the product is taken;
//! with the matrices' gradients that was a tenth of a training step.

use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Affine;

#[derive(Clone, Debug)]
pub(super) struct Saved {
    x: Array,
    weight: Array,
}

impl Function<3> for Affine {
    type Saved = Saved;

    fn forward(&self, [x, weight, bias]: [Array; 3]) -> (Array, Saved) {
        (x.times_plus(&weight, bias.data()), Saved { x, weight })
    }

    fn backward(&self, Saved { x, weight }: Saved, grad: Array) -> [Array; 3] {
        let mut d_bias = vec![0.0; grad.cols()];
        for row in grad.data().chunks_exact(grad.cols()) {
            d_bias.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let d_bias = Array::new(d_bias, 1, grad.cols());
        [grad.times_transposed(&weight), x.transposed_times(&grad), d_bias]
    }
}
