//! Percentiles of times.

use serde::{Deserialize, Serialize};

/// Of a list of times, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half are no longer.
    pub median: f64,
    /// 95 of 100 are no longer.
    pub p95: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Percentiles {
    /// By nearest rank; all 0 of no time.
    ///
    /// ```
    /// let of = tapir_load::Percentiles::of((1..=100).rev().map(f64::from).collect());
    /// assert_eq!((of.median, of.p95, of.p99, of.max), (50.0, 95.0, 99.0, 100.0));
    /// ```
    pub fn of(mut times: Vec<f64>) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(50), p95: at(95), p99: at(99), max: at(100) }
    }
}
