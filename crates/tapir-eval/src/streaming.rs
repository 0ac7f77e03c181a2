//! What users of streaming taggers ask beyond the paper: how soon a label can be trusted, and how
//! much it flickers.

use serde::{Deserialize, Serialize};

use crate::f1::ratio;
use crate::{Dataset, Percentiles, Record, Summary, correction_time};

/// Measures of a live display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Streaming {
    /// Share of outputs that equal the *gold* labels of their words, mean over sentences (streaming
    /// exact match).
    pub exact_match: Summary,
    /// Words that arrive between a word and its final label, a delay included; mean over words.
    pub time_to_final: Summary,
    /// The same in percentiles.
    pub time_to_final_percentiles: Percentiles,
    /// Changes of labels that were already given, per word.
    pub flickers: f64,
    /// Share of words whose label was ever changed.
    pub changed: f64,
}

impl Streaming {
    /// Measures a record.
    pub fn of(dataset: &Dataset, record: &Record) -> Self {
        let delay = record.setting.delay;
        let (mut words, mut flickers, mut changed) = (0, 0, 0);
        let mut times = Vec::new();
        let mut exact = Vec::with_capacity(record.runs.len());
        for (example, run) in dataset.examples.iter().zip(&record.runs) {
            let outputs = &run.outputs;
            let right = outputs.iter().filter(|output| example.gold.starts_with(output)).count();
            exact.push(if outputs.is_empty() { 1.0 } else { ratio(right, outputs.len()) });
            for word in 0..outputs.len() {
                let changes = outputs.changes(word).count();
                words += 1;
                flickers += changes;
                changed += usize::from(changes > 0);
            }
            times.extend(correction_time(outputs).iter().map(|time| (time + delay) as f64));
        }
        Self {
            exact_match: Summary::of(exact),
            time_to_final: Summary::of(times.iter().copied()),
            time_to_final_percentiles: Percentiles::of(times),
            flickers: ratio(flickers, words),
            changed: ratio(changed, words),
        }
    }
}
