//! The learning rate over the epochs.

use serde::{Deserialize, Serialize};

/// A linear warm-up by epochs, then halvings.
///
/// ```
/// let schedule = tapir_train::Schedule::default();
/// assert_eq!(schedule.factor(0), 0.2);
/// assert_eq!(schedule.factor(4), 1.0);
/// assert_eq!(schedule.factor(30), 0.5);
/// assert_eq!(schedule.factor(45), 0.125);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Epoch e (from 0) of the first so many uses (e + 1) / warm_up of the rate.
    pub warm_up: usize,
    /// The rate is halved after each of these epochs.
    pub halve_after: Vec<usize>,
    /// Falls linearly to a tenth over this many epochs after the warm-up, instead of staying; 0 for
    /// no fall.
    pub decay: usize,
    /// Changes with every batch instead of every epoch: for few epochs.
    pub smooth: bool,
}

impl Default for Schedule {
    /// The paper's: 5 epochs of warm-up, halved after 30, 40 and 45.
    fn default() -> Self {
        Self { warm_up: 5, halve_after: vec![30, 40, 45], decay: 0, smooth: false }
    }
}

impl Schedule {
    /// What the learning rate is multiplied by at a batch of an epoch, both from 0.
    pub(crate) fn factor_at(&self, epoch: usize, batch: usize, batches: usize) -> f64 {
        if !self.smooth {
            return self.factor(epoch);
        }
        let share = batch as f64 / batches.max(1) as f64;
        if epoch < self.warm_up {
            // The first batch learns something, too.
            let first = 1.0 / batches.max(1) as f64;
            return (epoch as f64 + share + first) / self.warm_up as f64;
        }
        self.after_warm_up(epoch, share)
    }

    /// What the learning rate is multiplied by in an epoch, from 0.
    pub fn factor(&self, epoch: usize) -> f64 {
        if epoch < self.warm_up {
            return (epoch + 1) as f64 / self.warm_up as f64;
        }
        self.after_warm_up(epoch, 0.0)
    }

    fn after_warm_up(&self, epoch: usize, share: f64) -> f64 {
        let halvings = self.halve_after.iter().filter(|after| epoch >= **after).count();
        let done = ((epoch - self.warm_up) as f64 + share) / self.decay.max(1) as f64;
        let fall = if self.decay > 0 { 1.0 - 0.9 * done.min(1.0) } else { 1.0 };
        fall * 0.5f64.powi(halvings as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_schedule_meets_the_other_at_the_ends_of_epochs() {
        let steps = Schedule { warm_up: 2, halve_after: vec![], decay: 4, smooth: false };
        let smooth = Schedule { smooth: true, ..steps.clone() };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        for epoch in 0..2 {
            close(smooth.factor_at(epoch, 9, 10), steps.factor(epoch));
        }
        for epoch in 2..8 {
            close(smooth.factor_at(epoch, 0, 10), steps.factor(epoch));
        }
        close(smooth.factor_at(0, 0, 10), 0.05);
        close(smooth.factor_at(2, 5, 10), 1.0 - 0.9 / 8.0);
        close(steps.factor_at(2, 5, 10), 1.0);
    }
}
