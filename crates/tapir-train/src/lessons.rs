//! What a reviser teaches: its labels for every prefix of a sentence, and its distribution for the
//! newest word of each.

use std::ops::ControlFlow;

use rayon::prelude::*;
use tapir::batch::{self, Work};
use tapir::{Mode, Model, Session, SessionOptions, Update};
use tapir_data::Example;

use crate::Result;

/// How many sentences a reviser reads beside each other: its weights are then fetched once for all.
const TOGETHER: usize = 16;

/// How many it reads until it says so: some seconds of an encoder.
const AT_A_TIME: usize = 64 * TOGETHER;

/// A reviser's answers to one sentence.
#[derive(Default)]
pub(crate) struct Lesson {
    /// Its labels after each step.
    pub(crate) labels: Vec<Vec<u16>>,
    /// Its distribution over labels at each step, [steps, labels].
    pub(crate) newest: Vec<f32>,
}

/// Runs a reviser restart-incrementally over sentences. `on_progress` is told how many it has read,
/// and none are given once it has had enough.
pub(crate) fn lessons(
    reviser: &Model,
    examples: &[&Example],
    on_progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Vec<Lesson>>> {
    let mut lessons = Vec::with_capacity(examples.len());
    for examples in examples.chunks(AT_A_TIME) {
        let together = examples.par_chunks(TOGETHER).map(|examples| read(reviser, examples));
        lessons.extend(together.collect::<Result<Vec<_>>>()?.into_iter().flatten());
        if on_progress(lessons.len()).is_break() {
            return Ok(None);
        }
    }
    Ok(Some(lessons))
}

fn read(reviser: &Model, examples: &[&Example]) -> Result<Vec<Lesson>> {
    let options = SessionOptions::new().mode(Mode::Restart).undo(0);
    let session = |_| reviser.session_with(options);
    let mut sessions = examples.iter().map(session).collect::<tapir::Result<Vec<_>>>()?;
    let mut lessons: Vec<Lesson> = examples.iter().map(|_| Lesson::default()).collect();
    let longest = examples.iter().map(|example| example.ids.len()).max().unwrap_or(0);
    for step in 0..longest {
        let has_step = |i: &usize| step < examples[*i].ids.len();
        for i in (0..examples.len()).filter(has_step) {
            begin_push(&mut sessions[i], examples[i], step)?;
        }
        for work in [Work::Word, Work::Revision] {
            let waiting = sessions.iter_mut().filter(|session| session.work() == Some(work));
            let mut waiting: Vec<&mut Session> = waiting.collect();
            match work {
                _ if waiting.is_empty() => {}
                Work::Word => batch::read(&mut waiting)?,
                Work::Revision => batch::revise(&mut waiting)?,
            }
        }
        for i in (0..examples.len()).filter(has_step) {
            let (session, lesson) = (&mut sessions[i], &mut lessons[i]);
            session.take_update()?;
            lesson.labels.push(session.label_ids().to_vec());
            // The first steps of a delayed model label no word.
            let word = step.checked_sub(reviser.config().delay);
            let distribution = word.and_then(|word| session.distribution(word));
            let nothing = || vec![0.0; reviser.labels().len()];
            lesson.newest.extend(distribution.unwrap_or_else(nothing));
        }
    }
    Ok(lessons)
}

/// Gives a session the word of a step, by its text where there is one: a reviser may read more of
/// it than its row.
fn begin_push(session: &mut Session, example: &Example, step: usize) -> Result<()> {
    match example.words.get(step) {
        Some(word) => session.begin_push(word)?,
        None => session.begin_push_id(example.ids[step])?,
    }
    Ok(())
}

/// The same, with all work that follows.
pub(crate) fn push(session: &mut Session, example: &Example, step: usize) -> Result<Update> {
    Ok(match example.words.get(step) {
        Some(word) => session.push(word)?,
        None => session.push_id(example.ids[step])?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The lessons of all examples.
    pub(crate) fn all(reviser: &Model, examples: &[&Example]) -> Vec<Lesson> {
        let mut read = 0;
        let mut on_progress = |sentences| {
            read = sentences;
            ControlFlow::Continue(())
        };
        let lessons = lessons(reviser, examples, &mut on_progress).unwrap();
        assert_eq!(read, examples.len());
        lessons.expect("nobody stopped it")
    }

    /// Beside others or alone, each sentence is read as by a session of its own, and by its words:
    /// both are unknown to the vocabulary, but not to a reviser of word pieces.
    #[test]
    fn lessons_are_those_of_a_session() {
        for delay in 0..2 {
            let mut parts = tapir::doctest::pretrained();
            parts.config.delay = delay;
            let model = parts.load().unwrap();
            let texts = ["play zither by miles", "zithers", "davis ? jazz", "zither zithers"];
            let example = |text: &&str| {
                let words: Vec<_> = text.split(' ').map(Into::into).collect();
                Example { ids: vec![1; words.len() + delay], words, ..Example::default() }
            };
            let examples: Vec<Example> = texts.iter().cycle().take(37).map(example).collect();
            let examples: Vec<&Example> = examples.iter().collect();
            let together = all(&model, &examples);
            assert_eq!(together.len(), 37);
            let stopped = lessons(&model, &examples, &mut |_| ControlFlow::Break(())).unwrap();
            assert!(stopped.is_none(), "it goes on though nobody wants it to");
            for (example, lesson) in examples.iter().zip(&together) {
                let options = SessionOptions::new().mode(Mode::Restart);
                let mut session = model.session_with(options).unwrap();
                for step in 0..example.ids.len() {
                    push(&mut session, example, step).unwrap();
                    assert_eq!(session.label_ids(), lesson.labels[step]);
                }
            }
            assert_ne!(together[1].newest, together[0].newest[..together[1].newest.len()]);
        }
    }
}
