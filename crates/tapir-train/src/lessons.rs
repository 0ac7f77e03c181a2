//! What a reviser teaches: its labels for every prefix of a sentence, and its distribution for the
//! newest word of each.

use rayon::prelude::*;
use tapir::{Mode, Model, Session, SessionOptions, Update};
use tapir_data::Example;

use crate::Result;

/// A reviser's answers to one sentence.
pub(crate) struct Lesson {
    /// Its labels after each step.
    pub(crate) labels: Vec<Vec<u16>>,
    /// Its distribution over labels at each step, [steps, labels].
    pub(crate) newest: Vec<f32>,
}

/// Runs a reviser restart-incrementally over sentences.
pub(crate) fn lessons(reviser: &Model, examples: &[&Example]) -> Result<Vec<Lesson>> {
    let lesson = |example: &&Example| -> Result<Lesson> {
        let options = SessionOptions::new().mode(Mode::Restart).undo(0);
        let mut session = reviser.session_with(options)?;
        let (mut labels, mut newest) = (Vec::new(), Vec::new());
        for step in 0..example.ids.len() {
            push(&mut session, example, step)?;
            labels.push(session.label_ids().to_vec());
            // The first steps of a delayed model label no word.
            let word = step.checked_sub(reviser.config().delay);
            let distribution = word.and_then(|word| session.distribution(word));
            newest.extend(distribution.unwrap_or_else(|| vec![0.0; reviser.labels().len()]));
        }
        Ok(Lesson { labels, newest })
    };
    examples.par_iter().map(lesson).collect()
}

/// Gives a session the word of a step, by its text where there is one: a reviser may read more of
/// it than its row.
pub(crate) fn push(session: &mut Session, example: &Example, step: usize) -> Result<Update> {
    Ok(match example.words.get(step) {
        Some(word) => session.push(word)?,
        None => session.push_id(example.ids[step])?,
    })
}
