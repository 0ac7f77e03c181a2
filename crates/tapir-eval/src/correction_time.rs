//! Correction time (CT): how long a label takes to settle.

use crate::Outputs;

/// For each word, the steps between its first label and the last change of it.
///
/// ```
/// use tapir_eval::{Outputs, correction_time};
/// let outputs = Outputs::new([[3].as_slice(), &[3, 4], &[5, 4, 4]])?;
/// assert_eq!(correction_time(&outputs), [2, 0, 0]);
/// # Ok::<(), tapir_eval::Error>(())
/// ```
pub fn correction_time(outputs: &Outputs) -> Vec<usize> {
    (0..outputs.len())
        .map(|word| outputs.changes(word).last().map_or(0, |step| step - word))
        .collect()
}

/// The correction time score, in 0..=1: the sum of all times over the largest that it could be.
///
/// ```
/// use tapir_eval::{Outputs, correction_time_score};
/// let outputs = Outputs::new([[3].as_slice(), &[3, 4], &[5, 4, 4]])?;
/// assert!((correction_time_score(&outputs) - 2.0 / 3.0).abs() < 1e-9);
/// # Ok::<(), tapir_eval::Error>(())
/// ```
pub fn correction_time_score(outputs: &Outputs) -> f64 {
    let largest = outputs.len() * outputs.len().saturating_sub(1) / 2;
    if largest == 0 {
        0.0
    } else {
        correction_time(outputs).iter().sum::<usize>() as f64 / largest as f64
    }
}
