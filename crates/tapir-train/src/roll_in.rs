//! Actions from the reviser: REVISE is right where its labels differ from those that stand, or only
//! where one that differs is also its last word.
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
    /// The reviser: REVISE wherever it pays.
    Reviser,
    /// The model's own policy, at its threshold.
    Policy,
}

/// How sentences are read and judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RollIn {
    pub(crate) guide: Guide,
    /// Only what lasts pays: see [`Teaching::lasting`](crate::Teaching::lasting).
    pub(crate) lasting: bool,
}

/// Reads sentences with a two-pass model; `lessons` are those of its reviser. Each example gets the
/// actions that would have been right, and the revisions that were made.
pub(crate) fn roll_in(
    model: &Model,
    examples: &[&Example],
    lessons: &[&Lesson],
    how: RollIn,
) -> Result<Vec<Example>> {
    let read = |(example, lesson): (&&Example, &&Lesson)| read(model, example, lesson, how);
    examples.par_iter().zip(lessons).map(read).collect()
}

fn read(model: &Model, example: &Example, lesson: &Lesson, how: RollIn) -> Result<Example> {
    let options = SessionOptions::new().mode(Mode::TwoPass).undo(1);
    let mut session = model.session_with(options)?;
    let mut rolled = Example { actions: Vec::new(), revisions: Vec::new(), ..example.clone() };
    for step in 0..example.ids.len() {
        // Without a revision, to see what would stand.
        session.set_threshold(1.0)?;
        let policy = push(&mut session, example, step)?.policy;
        let pays = pays(session.label_ids(), lesson, step, how.lasting);
        rolled.actions.push(pays);
        let threshold = model.config().threshold;
        let revises = match how.guide {
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

/// Does the reviser differ at a step in the labels that both still hold, and if only what lasts
/// counts, by one that it still gives at the end?
fn pays(ours: &[u16], lesson: &Lesson, step: usize, lasting: bool) -> bool {
    let theirs = &lesson.labels[step];
    // Labels are of the newest words: at the end so many have come since.
    let since = lesson.labels.len() - 1 - step;
    let end = lesson.labels.last().filter(|_| lasting);
    let lasts = |back: usize, label: u16| {
        end.is_none_or(|end| end.iter().rev().nth(back + since).is_none_or(|last| *last == label))
    };
    let newest_first = ours.iter().rev().zip(theirs.iter().rev()).enumerate();
    newest_first.into_iter().any(|(back, (our, their))| our != their && lasts(back, *their))
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

    /// A model, sentences, and what its reviser says of them.
    fn taught(parts: &tapir::Parts) -> (Model, Vec<Example>, Vec<Lesson>) {
        let model = parts.clone().load().unwrap();
        let examples = examples(&model);
        let lessons = all(&model, &examples.iter().collect::<Vec<_>>());
        (model, examples, lessons)
    }

    /// The sentences, read.
    fn rolled(
        (model, examples, lessons): &(Model, Vec<Example>, Vec<Lesson>),
        how: RollIn,
    ) -> Vec<Example> {
        let examples: Vec<&Example> = examples.iter().collect();
        roll_in(model, &examples, &lessons.iter().collect::<Vec<_>>(), how).unwrap()
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
            let taught = taught(&parts);
            let (model, _, lessons) = &taught;
            let rolled = rolled(&taught, RollIn { guide: Guide::Reviser, lasting: false });
            for (rolled, lesson) in rolled.iter().zip(lessons) {
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
            let taught = taught(&parts);
            for rolled in rolled(&taught, RollIn { guide: Guide::Policy, lasting: false }) {
                let mut session = taught.0.session();
                let mut revises =
                    |step: &usize| session.push_id(rolled.ids[*step]).unwrap().revised();
                let expected: Vec<usize> = (0..rolled.ids.len()).filter(&mut revises).collect();
                assert_eq!(steps(&rolled), expected);
                revised += expected.len();
            }
        }
        assert!(revised > 0);
    }

    /// What the reviser takes back again does not pay, where only what lasts does.
    #[test]
    fn a_change_that_is_taken_back_pays_only_if_any_does() {
        let labels = [&[1][..], &[1, 2], &[1, 2, 3], &[1, 4, 3, 5]];
        let lesson = Lesson { labels: labels.map(<[u16]>::to_vec).into(), newest: Vec::new() };
        let pays = |ours: &[u16], step: usize| {
            [false, true].map(|lasting| pays(ours, &lesson, step, lasting))
        };
        assert_eq!(pays(&[0], 0), [true, true]);
        assert_eq!(pays(&[1, 0], 1), [true, false], "2 becomes 4");
        assert_eq!(pays(&[0, 0], 1), [true, true], "but 1 stays");
        assert_eq!(pays(&[1, 0, 3], 2), [true, false]);
        assert_eq!(pays(&[1, 0, 3, 5], 3), [true, true]);
        assert_eq!(pays(&[1, 4, 3, 5], 3), [false, false]);
        // A session that has forgotten its first labels is judged by the others.
        assert_eq!(pays(&[0], 2), [true, true]);
        assert_eq!(pays(&[3], 2), [false, false]);
    }

    /// Revised where it pays and lasts, the labels in the end are the reviser's all the same, at no
    /// more revisions.
    #[test]
    fn what_lasts_is_enough_for_the_labels_in_the_end() {
        for delay in 0..3 {
            let mut parts = tapir::doctest::parts();
            parts.config.delay = delay;
            let taught = taught(&parts);
            let (model, _, lessons) = &taught;
            let [any, lasting] = [false, true]
                .map(|lasting| rolled(&taught, RollIn { guide: Guide::Reviser, lasting }));
            for ((any, lasting), lesson) in any.iter().zip(&lasting).zip(lessons) {
                let mut session = model.session();
                for (step, action) in lasting.actions.iter().enumerate() {
                    session.set_threshold(if *action { 0.0 } else { 1.0 }).unwrap();
                    session.push_id(lasting.ids[step]).unwrap();
                }
                assert_eq!(Some(session.label_ids()), lesson.labels.last().map(Vec::as_slice));
                assert!(lasting.revisions.len() <= any.revisions.len());
            }
        }
    }
}
