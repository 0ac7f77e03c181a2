//! How far two models give the same labels: an int8 model and the f32 one that it was made from.

use serde::{Deserialize, Serialize};

use crate::Record;

/// How far another model gives the same final labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// The name of the other model's directory.
    pub with: String,
    /// The share of words whose final label is the same, 0 to 1.
    pub labels: f64,
}

impl Against {
    /// Compares what two models did with the same sentences.
    pub fn of(record: &Record, other: &Record, with: String) -> Self {
        let (mut same, mut all) = (0, 0);
        for (a, b) in record.runs.iter().zip(&other.runs) {
            let (a, b) = (a.outputs.last(), b.outputs.last());
            same += a.iter().zip(b).filter(|(a, b)| a == b).count();
            all += a.len().max(b.len());
        }
        Self { with, labels: same as f64 / all.max(1) as f64 }
    }
}
