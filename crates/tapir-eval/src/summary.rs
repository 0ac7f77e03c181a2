//! Means, deviations and percentiles.

use serde::{Deserialize, Serialize};

/// Mean and (population) standard deviation of a list of values.
///
/// ```
/// let summary = tapir_eval::Summary::of([1.0, 3.0]);
/// assert_eq!((summary.mean, summary.std, summary.count), (2.0, 1.0, 2));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean; 0 of no value.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
    /// How many values.
    pub count: usize,
}

impl Summary {
    /// Summarises values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        // Welford's method: one pass, exact enough for any number of sentences.
        let (mut mean, mut squares, mut count) = (0.0, 0.0, 0usize);
        for value in values {
            count += 1;
            let before = value - mean;
            mean += before / count as f64;
            squares += before * (value - mean);
        }
        let std = if count == 0 { 0.0 } else { (squares / count as f64).sqrt() };
        Self { mean, std, count }
    }
}

/// Median, 95th and 99th percentile, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    #[serde(alias = "p50")]
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Percentiles {
    /// Percentiles by nearest rank; all 0 of no value.
    ///
    /// ```
    /// let p = tapir_eval::Percentiles::of((1..=100).map(f64::from).collect());
    /// assert_eq!((p.median, p.p95, p.p99, p.max), (50.0, 95.0, 99.0, 100.0));
    /// ```
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100);
            values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { median: at(50), p95: at(95), p99: at(99), max: at(100) }
    }
}
