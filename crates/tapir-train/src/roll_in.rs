//! Actions from the reviser: REVISE is right where its labels differ from those that stand.
//!
//! What stands depends on the revisions made before, so a model reads every sentence and is asked
//! at each step. First it revises exactly where it should; then where its own policy says so, so
//! that it learns on the histories that it will meet (Ross et al., 2011: DAgger).

use rayon::prelude::*;
use tapir::{FinalPass, Mode, Model, Session, SessionOptions};
use tapir_data::{Revision, Sentence};

use crate::Result;
use crate::lessons::{Lesson, push, steps};

/// Who decides while a sentence is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guide {
    /// The reviser: REVISE wherever its labels differ.
    Reviser,
    /// The model's own policy, at its threshold.
    Policy,
}

/// A sentence that was read.
pub(crate) struct RollIn {
    /// Would a revision have changed a label at this step?
    pub(crate) actions: Vec<bool>,
    /// The revisions that were made.
    pub(crate) revisions: Vec<Revision>,
}

/// Reads sentences with a two-pass model; `lessons` are those of its reviser.
pub(crate) fn roll_in(
    model: &Model,
    sentences: &[&Sentence],
    lessons: &[&Lesson],
    guide: Guide,
) -> Result<Vec<RollIn>> {
    let read = |(sentence, lesson): (&&Sentence, &&Lesson)| read(model, sentence, lesson, guide);
    sentences.par_iter().zip(lessons).map(read).collect()
}

fn read(model: &Model, sentence: &Sentence, lesson: &Lesson, guide: Guide) -> Result<RollIn> {
    let options =
        SessionOptions::new().mode(Mode::TwoPass).final_pass(FinalPass::Policy).undo(1);
    let mut session = model.session_with(options)?;
    let mut rolled = RollIn { actions: Vec::new(), revisions: Vec::new() };
    for step in 0..steps(model, sentence) {
        // Without a revision, to see what would stand.
        session.set_threshold(1.0)?;
        let policy = push(&mut session, sentence, step)?.policy;
        let pays = differ(session.label_ids(), &lesson.labels[step]);
        rolled.actions.push(pays);
        let revises = match guide {
            Guide::Reviser => pays,
            Guide::Policy => policy.is_some_and(|value| {
                tapir::Action::decide(value, model.config().threshold) == tapir::Action::Revise
            }),
        };
        if revises {
            // Undo is exact: the step is the same, but for the revision.
            session.revoke(1)?;
            session.set_threshold(0.0)?;
            push(&mut session, sentence, step)?;
            rolled.revisions.push(revision(&session, step));
        }
    }
    Ok(rolled)
}

/// Do two sessions differ in the labels that both still hold?
fn differ(ours: &[u16], theirs: &[u16]) -> bool {
    ours.iter().rev().zip(theirs.iter().rev()).any(|(a, b)| a != b)
}

/// What the revision at `step` put into the memory.
fn revision(session: &Session, step: usize) -> Revision {
    let memory = session.model().config().controller.as_ref().map_or(0, |sizes| sizes.memory);
    let first = (step + 1).saturating_sub(memory);
    let logits = (first..=step).filter_map(|step| session.step_logits(step)).flatten();
    Revision { step, logits: logits.copied().collect() }
}
