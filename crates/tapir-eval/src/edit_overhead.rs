//! Edit overhead (EO): the share of edits that the final output did not need.

use crate::Outputs;

/// Unnecessary edits over all edits, in 0..1. Giving a word its first label counts as an edit, and
/// is a necessary one.
///
/// ```
/// use tapir_eval::{Outputs, edit_overhead};
/// let outputs = Outputs::new([[3].as_slice(), &[3, 4], &[5, 4, 4]])?;
/// assert_eq!(edit_overhead(&outputs), 0.25); // four edits, of which one was undone
/// # Ok::<(), tapir_eval::Error>(())
/// ```
pub fn edit_overhead(outputs: &Outputs) -> f64 {
    edit_overhead_ahead(outputs, 0)
}

/// The same of an output that is held back by `delay` words: EOΔ of the reference model (§5, delay
/// strategy).
///
/// The last `delay` words never reach this output, so that edits of them do not count.
pub fn edit_overhead_ahead(outputs: &Outputs, delay: usize) -> f64 {
    let needed = outputs.len().saturating_sub(delay);
    // A word at position p is shown from step p + delay on; what happens to its label before is not
    // seen.
    let undone: usize = (0..needed)
        .map(|word| outputs.changes(word).filter(|step| *step > word + delay).count())
        .sum();
    if needed == 0 { 0.0 } else { undone as f64 / (needed + undone) as f64 }
}
