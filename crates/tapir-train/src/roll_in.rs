//! Actions from the reviser: REVISE is right where its labels differ from those that stand.
//!
//! What stands depends on the revisions made before, so a model reads every sentence and is asked
//! at each step. First it revises exactly where it should; then where its own policy says so, so
//! that it learns on the histories that it will meet (Ross et al., 2011: DAgger).

use rayon::prelude::*;
use tapir::{Action, Mode, Model, Session, SessionOptions};
use tapir_data::{Example, Revision};

use crate::Result;
use crate::lessons::{Lesson, push};

/// Who decides while a sentence is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guide {
    /// The reviser: REVISE wherever its labels differ.
    Reviser,
    /// The model's own policy, at its threshold.
    Policy,
}

/// Reads sentences with a two-pass model; `lessons` are those of its reviser. Each example gets the
/// actions that would have been right, and the revisions that were made.
pub(crate) fn roll_in(
    model: &Model,
    examples: &[&Example],
    lessons: &[&Lesson],
    guide: Guide,
) -> Result<Vec<Example>> {
    let read = |(example, lesson): (&&Example, &&Lesson)| read(model, example, lesson, guide);
    examples.par_iter().zip(lessons).map(read).collect()
}

fn read(model: &Model, example: &Example, lesson: &Lesson, guide: Guide) -> Result<Example> {
    let options = SessionOptions::new().mode(Mode::TwoPass).undo(1);
    let mut session = model.session_with(options)?;
    let mut rolled = Example { actions: Vec::new(), revisions: Vec::new(), ..example.clone() };
    for step in 0..example.ids.len() {
        // Without a revision, to see what would stand.
        session.set_threshold(1.0)?;
        let policy = push(&mut session, example, step)?.policy;
        let pays = differ(session.label_ids(), &lesson.labels[step]);
        rolled.actions.push(pays);
        let threshold = model.config().threshold;
        let revises = match guide {
            Guide::Reviser => pays,
            Guide::Policy => {
                policy.is_some_and(|value| Action::decide(value, threshold) == Action::Revise)
            }
        };
        if revises {
            // Undo is exact: the step is the same, but for the revision.
            session.revoke(1)?;
            session.set_threshold(0.0)?;
            push(&mut session, example, step)?;
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

#[cfg(test)]
mod tests {
    use tapir::Vocabulary;

    use super::*;
    use crate::lessons::tests::all;

    fn examples(model: &Model) -> Vec<Example> {
        let texts = ["play some jazz by miles davis", "jazz", "some some play davis miles by jazz"];
        let null = std::iter::repeat_n(Vocabulary::NULL, model.config().delay);
        let example = |text: &str| {
            let ids = text.split(' ').map(|word| model.vocabulary().id(word));
            Example { ids: ids.chain(null.clone()).collect(), ..Example::default() }
        };
        texts.into_iter().map(example).collect()
    }

    fn steps(example: &Example) -> Vec<usize> {
        example.revisions.iter().map(|revision| revision.step).collect()
    }

    /// Revised exactly where it pays, the labels that stand are the reviser's at every step.
    #[test]
    fn the_reviser_as_a_guide_leaves_nothing_to_revise() {
        let mut pays = 0;
        for delay in 0..3 {
            let mut parts = tapir::doctest::parts();
            parts.config.delay = delay;
            let model = parts.load().unwrap();
            let examples = examples(&model);
            let examples: Vec<&Example> = examples.iter().collect();
            let lessons = all(&model, &examples);
            let borrowed: Vec<&Lesson> = lessons.iter().collect();
            let rolled = roll_in(&model, &examples, &borrowed, Guide::Reviser).unwrap();
            for (rolled, lesson) in rolled.iter().zip(&lessons) {
                let mut session = model.session();
                for (step, action) in rolled.actions.iter().enumerate() {
                    session.set_threshold(if *action { 0.0 } else { 1.0 }).unwrap();
                    session.push_id(rolled.ids[step]).unwrap();
                    assert_eq!(session.label_ids(), lesson.labels[step]);
                }
                let wanted = (0..rolled.actions.len()).filter(|step| rolled.actions[*step]);
                assert_eq!(steps(rolled), wanted.collect::<Vec<_>>());
                pays += rolled.revisions.len();
            }
        }
        assert!(pays > 0, "the passes agree everywhere");
    }

    /// The policy as a guide revises where a session of the same model does.
    #[test]
    fn the_policy_as_a_guide_makes_the_histories_that_a_session_makes() {
        let mut parts = tapir::doctest::parts();
        let mut revised = 0;
        for threshold in [0.0, 0.499, 0.5, 0.501, 1.0] {
            parts.config.threshold = threshold;
            let model = parts.clone().load().unwrap();
            let examples = examples(&model);
            let examples: Vec<&Example> = examples.iter().collect();
            let lessons = all(&model, &examples);
            let lessons: Vec<&Lesson> = lessons.iter().collect();
            for rolled in roll_in(&model, &examples, &lessons, Guide::Policy).unwrap() {
                let mut session = model.session();
                let mut revises =
                    |step: &usize| session.push_id(rolled.ids[*step]).unwrap().revised();
                let expected: Vec<usize> = (0..rolled.ids.len()).filter(&mut revises).collect();
                assert_eq!(steps(&rolled), expected);
                revised += expected.len();
            }
        }
        assert!(revised > 0);
    }
}
