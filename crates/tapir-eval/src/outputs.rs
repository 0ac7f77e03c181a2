//! The output buffer after every step of one sentence: what all incremental metrics are computed
//! from.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Label ids after each step: one label after the first, two after the second, to the final output.
///
/// ```
/// let outputs = tapir_eval::Outputs::new([[3].as_slice(), &[3, 4], &[5, 4, 4]])?;
/// assert_eq!(outputs.len(), 3);
/// assert_eq!(outputs.last(), [5, 4, 4]);
/// # Ok::<(), tapir_eval::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u16>>", into = "Vec<Vec<u16>>")]
pub struct Outputs {
    steps: usize,
    /// The rows of a triangle, end to end: a corpus has millions of small ones.
    labels: Vec<u16>,
}

impl Outputs {
    /// Outputs from the first step to the last; each must have one label more than the one before.
    pub fn new<R: AsRef<[u16]>>(rows: impl IntoIterator<Item = R>) -> Result<Self> {
        let mut outputs = Self::default();
        for row in rows {
            outputs.push(row.as_ref())?;
        }
        Ok(outputs)
    }

    /// Adds the output after one more step.
    pub fn push(&mut self, labels: &[u16]) -> Result<()> {
        if labels.len() != self.steps + 1 {
            return Err(Error::Ragged { step: self.steps + 1, found: labels.len() });
        }
        self.steps += 1;
        self.labels.extend_from_slice(labels);
        Ok(())
    }

    /// How many steps there are, which is how many words the last output labels.
    pub fn len(&self) -> usize {
        self.steps
    }

    /// Is there no output at all?
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    /// The output after step `step`, counted from 0; empty beyond the last.
    pub fn at(&self, step: usize) -> &[u16] {
        let start = step * (step + 1) / 2;
        self.labels.get(start..start + step + 1).unwrap_or_default()
    }

    /// The final output.
    pub fn last(&self) -> &[u16] {
        self.steps.checked_sub(1).map_or(&[], |last| self.at(last))
    }

    /// All outputs in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u16]> + ExactSizeIterator {
        (0..self.steps).map(|step| self.at(step))
    }

    /// The steps, from 0, at which the word at `position` got another label than it had.
    pub(crate) fn changes(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        (position + 1..self.steps)
            .filter(move |&step| self.at(step)[position] != self.at(step - 1)[position])
    }
}

impl TryFrom<Vec<Vec<u16>>> for Outputs {
    type Error = Error;

    fn try_from(rows: Vec<Vec<u16>>) -> Result<Self> {
        Self::new(rows)
    }
}

impl From<Outputs> for Vec<Vec<u16>> {
    fn from(outputs: Outputs) -> Self {
        outputs.iter().map(<[u16]>::to_vec).collect()
    }
}
