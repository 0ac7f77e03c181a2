//! Cross entropy of softmax outputs, and of the policy's sigmoid.

use tapir::kernels;

use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Entropy {
    /// How much of a label's weight is spread evenly over all labels.
    pub(super) smoothing: f32,
    /// How much of the target is a teacher's distribution, where there is one.
    pub(super) distillation: f32,
}

impl Function<2> for Entropy {
    /// The gradient of the sum, and the shape of the target.
    type Saved = (Array, usize, usize);

    /// One column of logits is a sigmoid's (eq. 10): the target is then 0 or 1, and its entropy
    /// binary.
    fn forward(&self, [logits, target]: [Array; 2]) -> (Array, Self::Saved) {
        let (labels, width) = (logits.cols(), target.cols());
        let mut gradient = logits.data().to_vec();
        let mut total = 0.0f64;
        for ((row, logits), target) in gradient
            .chunks_exact_mut(labels)
            .zip(logits.data().chunks_exact(labels))
            .zip(target.data().chunks_exact(width))
        {
            let (label, weight, teacher) = (target[0], target[1], &target[2..]);
            if weight == 0.0 {
                row.fill(0.0);
            } else if labels == 1 {
                let logit = logits[0];
                // log(1 + eˣ) - a x, without overflow
                let loss = logit.max(0.0) - logit * label + (-logit.abs()).exp().ln_1p();
                kernels::sigmoid(row);
                row[0] = (row[0] - label) * weight;
                total += f64::from(loss * weight);
            } else {
                let gold = label as usize;
                let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
                let taught = if teacher.is_empty() { 0.0 } else { self.distillation };
                let share = (1.0 - taught) * self.smoothing / labels as f32;
                let own = (1.0 - taught) * (1.0 - self.smoothing);
                let mean = logits.iter().sum::<f32>() * share;
                let expected = mean
                    + own * logits[gold]
                    + taught * kernels::dot(&logits[..teacher.len()], teacher);
                total += f64::from((sum.ln() + top - expected) * weight);
                row.iter_mut()
                    .for_each(|value| *value = ((*value - top).exp() / sum - share) * weight);
                row[gold] -= own * weight;
                kernels::axpy(-taught * weight, teacher, &mut row[..teacher.len()]);
            }
        }
        let rows = logits.rows();
        (Array::new(vec![total as f32], 1, 1), (Array::new(gradient, rows, labels), rows, width))
    }

    fn backward(&self, (gradient, rows, width): Self::Saved, grad: Array) -> [Array; 2] {
        let factor = grad.data()[0];
        let scaled = gradient.data().iter().map(|value| value * factor).collect();
        [Array::new(scaled, rows, gradient.cols()), Array::zeros(rows, width)]
    }
}
