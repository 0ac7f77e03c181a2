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
    let options = SessionOptions::new().mode(Mode::TwoPass).final_pass(FinalPass::Policy).undo(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lessons::lessons;

    fn sentences() -> Vec<Sentence> {
        let texts = ["play some jazz by miles davis", "jazz", "some some play davis miles by jazz"];
        let sentence = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let labels = vec!["O"; words.len()];
            Sentence::new(words, labels)
        };
        texts.into_iter().map(sentence).collect()
    }

    /// Revised exactly where it pays, the labels that stand are the reviser's at every step.
    #[test]
    fn the_reviser_as_a_guide_leaves_nothing_to_revise() {
        let mut pays = 0;
        for delay in 0..3 {
            let mut parts = tapir::doctest::parts();
            parts.config.delay = delay;
            let model = parts.load().unwrap();
            let sentences = sentences();
            let sentences: Vec<&Sentence> = sentences.iter().collect();
            let lessons = lessons(&model, &sentences).unwrap();
            let borrowed: Vec<&Lesson> = lessons.iter().collect();
            let rolled = roll_in(&model, &sentences, &borrowed, Guide::Reviser).unwrap();
            for ((sentence, lesson), rolled) in sentences.iter().zip(&lessons).zip(&rolled) {
                let options = SessionOptions::new().mode(Mode::TwoPass);
                let mut session = model.session_with(options).unwrap();
                for (step, action) in rolled.actions.iter().enumerate() {
                    session.set_threshold(if *action { 0.0 } else { 1.0 }).unwrap();
                    push(&mut session, sentence, step).unwrap();
                    assert_eq!(session.label_ids(), lesson.labels[step]);
                }
                let made: Vec<usize> = rolled.revisions.iter().map(|r| r.step).collect();
                let wanted = (0..rolled.actions.len()).filter(|step| rolled.actions[*step]);
                assert_eq!(made, wanted.collect::<Vec<_>>());
                pays += made.len();
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
            let sentences = sentences();
            let sentences: Vec<&Sentence> = sentences.iter().collect();
            let lessons = lessons(&model, &sentences).unwrap();
            let lessons: Vec<&Lesson> = lessons.iter().collect();
            let rolled = roll_in(&model, &sentences, &lessons, Guide::Policy).unwrap();
            for (sentence, rolled) in sentences.iter().zip(&rolled) {
                let mut session = model.session();
                let mut steps = Vec::new();
                for (step, word) in sentence.words.iter().enumerate() {
                    if session.push(word).unwrap().revised() {
                        steps.push(step);
                    }
                }
                assert_eq!(rolled.revisions.iter().map(|r| r.step).collect::<Vec<_>>(), steps);
                revised += steps.len();
            }
        }
        assert!(revised > 0);
    }
}
