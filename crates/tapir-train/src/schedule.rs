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
    /// Falls linearly towards a tenth over this many epochs after the warm-up, instead of staying:
    /// the first of them has the full rate, the one after them a tenth. 0 for no fall.
    pub decay: usize,
    /// Changes with every batch instead of every epoch: for few epochs.
    pub smooth: bool,
    /// Waits with the fall until so many epochs have brought no better validation score, or until
    /// no more epochs are left than it takes; the stage ends with the fall. 0 for a fall that
    /// begins with the end of the warm-up.
    pub plateau: usize,
}

impl Default for Schedule {
    /// The paper's: 5 epochs of warm-up, halved after 30, 40 and 45.
    fn default() -> Self {
        Self { warm_up: 5, halve_after: vec![30, 40, 45], decay: 0, smooth: false, plateau: 0 }
    }
}

impl Schedule {
    /// What the learning rate is multiplied by at a batch of an epoch, both from 0. `fall_from` is
    /// the epoch that a plateau ended with, if it has.
    pub(crate) fn factor_at(
        &self,
        epoch: usize,
        batch: usize,
        batches: usize,
        fall_from: Option<usize>,
    ) -> f64 {
        let share = batch as f64 / batches.max(1) as f64;
        if self.smooth && epoch < self.warm_up {
            // The first batch learns something, too.
            let first = 1.0 / batches.max(1) as f64;
            return (epoch as f64 + share + first) / self.warm_up as f64;
        }
        let share = if self.smooth { share } else { 0.0 };
        self.of_epoch(epoch, share, fall_from)
    }

    /// What the learning rate is multiplied by in an epoch, from 0. With a plateau, which only a
    /// run can see the end of, it never falls here.
    pub fn factor(&self, epoch: usize) -> f64 {
        self.of_epoch(epoch, 0.0, None)
    }

    /// Must the fall begin with this epoch, to be done with the last of so many?
    pub(crate) fn has_to_fall(&self, epoch: usize, epochs: usize) -> bool {
        epoch + self.decay >= epochs
    }

    /// Is a stage done before an epoch, because its rate has fallen?
    pub(crate) fn has_fallen(&self, epoch: usize, fall_from: Option<usize>) -> bool {
        self.plateau > 0 && fall_from.is_some_and(|from| epoch >= from + self.decay)
    }

    fn of_epoch(&self, epoch: usize, share: f64, fall_from: Option<usize>) -> f64 {
        if epoch < self.warm_up {
            return (epoch + 1) as f64 / self.warm_up as f64;
        }
        let halvings = self.halve_after.iter().filter(|after| epoch >= **after).count();
        let from = if self.plateau == 0 { Some(self.warm_up) } else { fall_from };
        let fall = match from {
            Some(from) if self.decay > 0 => {
                let done = ((epoch - from.min(epoch)) as f64 + share) / self.decay as f64;
                1.0 - 0.9 * done.min(1.0)
            }
            _ => 1.0,
        };
        fall * 0.5f64.powi(halvings as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat() -> Schedule {
        Schedule { warm_up: 0, halve_after: vec![], decay: 0, smooth: false, plateau: 0 }
    }

    #[test]
    fn a_plateau_holds_the_rate_until_it_ends() {
        let schedule = Schedule { warm_up: 1, decay: 3, plateau: 2, ..flat() };
        let factors = |fall_from| -> Vec<f64> {
            let percent = |epoch| (100.0 * schedule.factor_at(epoch, 0, 10, fall_from)).round();
            (4..9).map(percent).collect()
        };
        assert_eq!(factors(None), [100.0; 5]);
        assert_eq!(factors(Some(5)), [100.0, 100.0, 70.0, 40.0, 10.0]);
        assert!(!schedule.has_fallen(7, Some(5)) && schedule.has_fallen(8, Some(5)));
        assert!(!schedule.has_fallen(100, None));
        assert!(!schedule.has_to_fall(6, 10) && schedule.has_to_fall(7, 10));
        // A fall that is known beforehand does not end a stage.
        assert!(!Schedule { plateau: 0, ..schedule }.has_fallen(100, None));
    }

    #[test]
    fn a_smooth_schedule_meets_the_other_at_the_ends_of_epochs() {
        let steps = Schedule { warm_up: 2, decay: 4, ..flat() };
        let smooth = Schedule { smooth: true, ..steps.clone() };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        for epoch in 0..2 {
            close(smooth.factor_at(epoch, 9, 10, None), steps.factor(epoch));
        }
        for epoch in 2..8 {
            close(smooth.factor_at(epoch, 0, 10, None), steps.factor(epoch));
        }
        close(smooth.factor_at(0, 0, 10, None), 0.05);
        close(smooth.factor_at(2, 5, 10, None), 1.0 - 0.9 / 8.0);
        close(steps.factor_at(2, 5, 10, None), 1.0);
    }
}
