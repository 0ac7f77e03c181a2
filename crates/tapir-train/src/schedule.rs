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
}

impl Default for Schedule {
    /// The paper's: 5 epochs of warm-up, halved after 30, 40 and 45.
    fn default() -> Self {
        Self { warm_up: 5, halve_after: vec![30, 40, 45], decay: 0 }
    }
}

impl Schedule {
    /// What the learning rate is multiplied by in an epoch, from 0.
    pub fn factor(&self, epoch: usize) -> f64 {
        if epoch < self.warm_up {
            return (epoch + 1) as f64 / self.warm_up as f64;
        }
        let halvings = self.halve_after.iter().filter(|after| epoch >= **after).count();
        let done = (epoch - self.warm_up) as f64 / self.decay.max(1) as f64;
        let fall = if self.decay > 0 { 1.0 - 0.9 * done.min(1.0) } else { 1.0 };
        fall * 0.5f64.powi(halvings as i32)
    }
}
