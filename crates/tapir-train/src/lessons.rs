//! What a reviser teaches: its labels for every prefix of a sentence, and its distribution for the
//! newest word of each.

use rayon::prelude::*;
use tapir::{Mode, Model, Session, SessionOptions, Update, Vocabulary};
use tapir_data::Sentence;

use crate::Result;

/// A reviser's answers to one sentence.
pub(crate) struct Lesson {
    /// Its labels after each step.
    pub(crate) labels: Vec<Vec<u16>>,
    /// Its distribution over labels at each step, [steps, labels].
    pub(crate) newest: Vec<f32>,
}

/// Runs a reviser restart-incrementally over sentences.
pub(crate) fn lessons(reviser: &Model, sentences: &[&Sentence]) -> Result<Vec<Lesson>> {
    let lesson = |sentence: &&Sentence| -> Result<Lesson> {
        let options = SessionOptions::new().mode(Mode::Restart).undo(0);
        let mut session = reviser.session_with(options)?;
        let (mut labels, mut newest) = (Vec::new(), Vec::new());
        for step in 0..steps(reviser, sentence) {
            push(&mut session, sentence, step)?;
            labels.push(session.label_ids().to_vec());
            // The first steps of a delayed model label no word.
            let word = step.checked_sub(reviser.config().delay);
            let distribution = word.and_then(|word| session.distribution(word));
            newest.extend(distribution.unwrap_or_else(|| vec![0.0; reviser.labels().len()]));
        }
        Ok(Lesson { labels, newest })
    };
    sentences.par_iter().map(lesson).collect()
}

/// The steps of a model over a sentence: its words, and the NULL tokens that end a delayed one.
pub(crate) fn steps(model: &Model, sentence: &Sentence) -> usize {
    sentence.len() + model.config().delay
}

/// Reads the word of a step.
pub(crate) fn push(session: &mut Session, sentence: &Sentence, step: usize) -> Result<Update> {
    Ok(match sentence.words.get(step) {
        Some(word) => session.push(word)?,
        None => session.push_id(Vocabulary::NULL)?,
    })
}
