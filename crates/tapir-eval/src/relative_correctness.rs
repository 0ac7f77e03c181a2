//! Relative correctness (RC): the share of outputs that are a prefix of the final one.

use crate::Outputs;

/// In 0..=1; the final output counts too, and is right by definition.
///
/// ```
/// use tapir_eval::{Outputs, relative_correctness};
/// let outputs = Outputs::new([[3].as_slice(), &[5, 4], &[5, 4, 4]])?;
/// assert!((relative_correctness(&outputs) - 2.0 / 3.0).abs() < 1e-9);
/// # Ok::<(), tapir_eval::Error>(())
/// ```
pub fn relative_correctness(outputs: &Outputs) -> f64 {
    relative_correctness_ahead(outputs, 0)
}

/// The same of an output that is held back by `delay` words: RCΔ of the reference model (§5, delay
/// strategy).
pub fn relative_correctness_ahead(outputs: &Outputs, delay: usize) -> f64 {
    let last = outputs.last();
    let shown = outputs.len().saturating_sub(delay);
    if shown == 0 {
        return 1.0; // only the final output is ever shown
    }
    let right = (1..=shown)
        .filter(|&words| outputs.at(words - 1 + delay)[..words] == last[..words])
        .count();
    right as f64 / shown as f64
}
