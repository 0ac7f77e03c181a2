//! Many sessions at once: one word of each, or the revision that each waits for, in one product a
//! matrix.
//!
//! This is Algorithm 1 of the paper, and the only implementation of it: a [`Session`] alone is a
//! batch of one. A row of a product does not depend on the rows beside it, to the bit, so neither
//! do the labels of a session on its company.

use crate::history::Step;
use crate::model::{Given, Recall, Scratch, Streams, with_scratch};
use crate::{Error, Mode, Result, Session};

/// What a session has to compute next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The first pass over a word: [`read`].
    Word,
    /// The second pass, over all words: [`revise`].
    Revision,
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Word => "word",
            Self::Revision => "revision",
        })
    }
}

/// Reads the next word of every session in one run of the first pass. Each must have
/// [`Work::Word`], and all must be of one model and mode; nothing is changed otherwise.
///
/// If it panics, every session is as it was before: whoever catches the panic can compute each
/// alone, and give up only the one that panics again.
///
/// ```
/// use tapir::batch::{self, Work};
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// let (mut a, mut b) = (model.session(), model.session());
/// a.begin_push("play")?;
/// b.begin_update(["book", "a", "table"])?;
/// batch::read(&mut [&mut a, &mut b])?;
/// // The policy may want a revision now; until it is made, there is the first pass's answer.
/// if let Some(update) = a.take_provisional() {
///     println!("provisional: {:?}", update.edits);
///     batch::revise(&mut [&mut a])?;
/// }
/// println!("{:?}", a.take_update()?.edits);
/// // Of the other session two words are left.
/// assert_eq!((a.work(), b.unread()), (None, 2));
/// # Ok::<(), tapir::Error>(())
/// ```
pub fn read(sessions: &mut [&mut Session]) -> Result<()> {
    check(sessions, Work::Word)?;
    run(sessions, Work::Word);
    Ok(())
}

/// Makes the revision that every session waits for in one run of the reviser. Each must have
/// [`Work::Revision`], and all must be of one model and mode; nothing is changed otherwise.
///
/// If it panics, every session is as it was before, as after [`read`].
pub fn revise(sessions: &mut [&mut Session]) -> Result<()> {
    check(sessions, Work::Revision)?;
    run(sessions, Work::Revision);
    Ok(())
}

fn check(sessions: &[&mut Session], work: Work) -> Result<()> {
    let Some(first) = sessions.first() else { return Ok(()) };
    for session in sessions {
        if session.work() != Some(work) {
            let reason = format!("a session has {:?} to do, expected {work:?}", session.work());
            return Err(Error::invalid("a batch", reason));
        }
        if !session.model().is(first.model()) || session.mode() != first.mode() {
            return Err(Error::invalid(
                "a batch",
                "its sessions are of several models or modes; expected one",
            ));
        }
    }
    Ok(())
}

/// Does the work of all sessions, which all must have, or leaves them as they were if it panics.
pub(crate) fn run(sessions: &mut [&mut Session], work: Work) {
    /// Dropped with sessions in it, it takes them back to their marks.
    struct RollBack<'a, 's>(&'a mut [&'s mut Session]);

    impl Drop for RollBack<'_, '_> {
        fn drop(&mut self) {
            self.0.iter_mut().for_each(|session| session.roll_back());
        }
    }

    sessions.iter_mut().for_each(|session| session.set_mark());
    let mut guard = RollBack(sessions);
    with_scratch(|scratch| match work {
        Work::Word => read_with(guard.0, scratch),
        Work::Revision => revise_with(guard.0, scratch),
    });
    guard.0 = &mut [];
}

/// Writes the memory of a session anew, after words were taken back that had revised its logits.
pub(crate) fn remember(session: &mut Session) {
    with_scratch(|scratch| {
        remember_with(&mut [session], |session| session.history().entries(), scratch);
    });
}

/// The words at the head of each session's queue: processor, controller, policy, memory.
fn read_with(sessions: &mut [&mut Session], scratch: &mut Scratch) {
    let Some(first) = sessions.first() else { return };
    let (model, mode) = (first.model().clone(), first.mode());
    let mut streams = std::mem::take(&mut scratch.streams);
    streams.ids.clear();
    for session in &mut *sessions {
        session.begin_step();
        streams.ids.extend_from_slice(session.history().last_row());
    }
    match (mode, model.first_pass()) {
        (Mode::Restart, _) | (_, None) => {
            for session in &mut *sessions {
                faults::point();
                session.history_mut().push_no_first_pass();
                session.end_step(Step { revised: true, policy: None });
            }
        }
        (mode, Some(first)) => {
            let labels = model.labels().len();
            let size = first.processor.state_size();
            streams.before.clear();
            streams.pieces.clear();
            streams.ends.clear();
            for session in &*sessions {
                let history = session.history();
                if first.processor.reads_pieces() {
                    streams.pieces.extend_from_slice(history.last_pieces());
                    streams.ends.push(streams.pieces.len());
                }
                streams.before.extend_from_slice(history.state(history.len() - 1));
            }
            streams.after.resize(sessions.len() * size, 0.0);
            streams.logits.resize(sessions.len() * labels, 0.0);
            let known = model.config().intent_outputs();
            streams.intents.resize(sessions.len() * known, 0.0);
            let Streams { ids, pieces, ends, before, after, logits, intents } = &mut streams;
            let words = Given { ids, pieces, ends };
            first.processor.step(words, before, after, logits, intents, scratch);
            let rows = after.chunks_exact(size).zip(logits.chunks_exact(labels));
            for (i, (session, (state, logits))) in sessions.iter_mut().zip(rows).enumerate() {
                faults::point();
                let intent = &intents[i * known..(i + 1) * known];
                session.history_mut().push_first_pass(state, logits, intent);
            }
            match first.revision.as_ref().filter(|_| mode == Mode::TwoPass) {
                None => sessions.iter_mut().for_each(|session| session.end_step(Step::default())),
                Some(revision) => {
                    let recall = |stream: usize| {
                        let history = sessions[stream].history();
                        let (memory, cells) = history.recall();
                        Recall {
                            h: first.processor.top(history.state(history.len())),
                            output: history.last_logits(1),
                            memory,
                            cells,
                        }
                    };
                    let size = revision.controller.state_size();
                    let states = &mut streams.after;
                    states.resize(sessions.len() * size, 0.0);
                    revision.controller.step(sessions.len(), recall, states, scratch);
                    let hidden = revision.controller.hidden();
                    let rows = states.chunks_exact(size).zip(scratch.k.chunks_exact(hidden));
                    for (session, (state, k)) in sessions.iter_mut().zip(rows) {
                        faults::point();
                        session.history_mut().push_control(state);
                        session.end_step(session.decide(revision.policy.value(k)));
                    }
                }
            }
        }
    }
    scratch.streams = streams;
    // A session that revises writes its memory afterwards.
    remember_with(sessions, |session| usize::from(!session.revision_due()), scratch);
}

/// The second pass of each session: all logits in its window anew, and the memory with them.
fn revise_with(sessions: &mut [&mut Session], scratch: &mut Scratch) {
    let Some(model) = sessions.first().map(|session| session.model().clone()) else { return };
    let Some(reviser) = model.reviser() else { return };
    let mut streams = std::mem::take(&mut scratch.streams);
    let Streams { ids, ends, .. } = &mut streams;
    ids.clear();
    ends.clear();
    for session in sessions.iter().filter(|session| !session.has_kept_revision()) {
        ids.extend_from_slice(session.history().reviser_input());
        ends.push(ids.len());
    }
    if !ids.is_empty() {
        reviser.run(ids, ends, scratch);
    }
    let (mut at, mut input) = (0, 0);
    let intents = model.config().intent_outputs();
    for session in &mut *sessions {
        faults::point();
        let values = session.history().revised_words() * model.labels().len();
        if session.has_kept_revision() {
            session.revise(None);
        } else {
            let intent = &scratch.intents[input * intents..(input + 1) * intents];
            session.revise(Some((&scratch.logits[at..at + values], intent)));
            at += values;
            input += 1;
        }
    }
    scratch.streams = streams;
    remember_with(sessions, |session| session.history().entries(), scratch);
    for session in sessions {
        faults::point();
        session.end_revision();
    }
}

/// Writes the last entries of each session's memory, as many as `count` says, from the states and
/// logits of their steps.
fn remember_with(
    sessions: &mut [&mut Session],
    count: impl Fn(&Session) -> usize,
    scratch: &mut Scratch,
) {
    let Some(first) = sessions.first().filter(|session| session.mode() == Mode::TwoPass) else {
        return;
    };
    let model = first.model().clone();
    let Some((first, revision)) =
        model.first_pass().and_then(|first| Some((first, first.revision.as_ref()?)))
    else {
        return;
    };
    let mut streams = std::mem::take(&mut scratch.streams);
    scratch.h.clear();
    streams.logits.clear();
    let mut rows = 0;
    for session in &*sessions {
        let (history, entries) = (session.history(), count(session));
        for step in history.len() - entries + 1..=history.len() {
            scratch.h.extend_from_slice(first.processor.top(history.state(step)));
        }
        streams.logits.extend_from_slice(history.last_logits(entries));
        rows += entries;
    }
    if rows > 0 {
        let size = revision.controller.memory_size();
        streams.after.resize(rows * size, 0.0);
        revision.memory.write(
            &revision.controller,
            &streams.logits,
            rows,
            &mut streams.after,
            scratch,
        );
        let mut at = 0;
        for session in sessions {
            faults::point();
            let entries = count(session);
            session.history_mut().write_memory(&streams.after[at * size..(at + entries) * size]);
            at += entries;
        }
    }
    scratch.streams = streams;
}

/// Panics in the midst of a batch, for the tests of what happens then.
mod faults {
    #[cfg(test)]
    thread_local! {
        /// How many points are passed before one panics; none panics at 0.
        pub(super) static COUNTDOWN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// A place at which a test can panic.
    #[inline]
    pub(super) fn point() {
        #[cfg(test)]
        COUNTDOWN.with(|countdown| {
            let left = countdown.get();
            countdown.set(left.saturating_sub(1));
            if left == 1 {
                // A panic that says nothing: the test has thousands of them.
                std::panic::resume_unwind(Box::new("a fault was asked for"));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;
    use crate::SessionOptions;

    #[test]
    fn a_batch_that_cannot_be_run_changes_nothing() {
        let model = crate::doctest::parts().load().unwrap();
        let (mut a, mut b) = (model.session(), model.session());
        a.begin_push("play").unwrap();
        assert!(read(&mut [&mut a, &mut b]).unwrap_err().to_string().contains("expected Word"));
        b.begin_push("play").unwrap();
        let mut c = crate::doctest::parts().load().unwrap().session();
        c.begin_push("play").unwrap();
        assert!(read(&mut [&mut a, &mut c]).unwrap_err().to_string().contains("several models"));
        let options = SessionOptions::new().mode(Mode::FirstPass);
        let mut d = model.session_with(options).unwrap();
        d.begin_push("play").unwrap();
        assert!(read(&mut [&mut a, &mut d]).is_err());
        assert_eq!((a.words(), c.words(), d.words()), (0, 0, 0));
        read(&mut [&mut a, &mut b]).unwrap();
        assert_eq!((a.words(), b.words()), (1, 1));
        read(&mut []).unwrap();
        revise(&mut []).unwrap();
    }

    /// All that can be seen of a session, floats as bits.
    fn observe(session: &Session) -> impl PartialEq + std::fmt::Debug + use<> {
        let steps = session.first()..session.words();
        let logits: Vec<Vec<u32>> = steps
            .filter_map(|step| session.step_logits(step))
            .map(|logits| logits.iter().map(|value| value.to_bits()).collect())
            .collect();
        let intent = session.intent_distribution();
        let intent = intent.map(|values| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        let stabilities = session.stabilities().into_iter().flatten();
        let trust = stabilities.chain(session.intent_stability()).chain(session.in_domain());
        let trust: Vec<u32> = trust.map(f32::to_bits).collect();
        let intent = (intent, trust);
        let work = (session.work(), session.unread(), session.undoable(), session.committed());
        (session.words(), session.label_ids().to_vec(), logits, session.actions(), work, intent)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

        /// Wherever a batch panics: its sessions are as before, and go on to what others give that
        /// were never interrupted.
        #[test]
        fn a_batch_that_panics_changes_nothing(
            pretrained in any::<bool>(),
            delay in 0..3usize,
            mode in prop_oneof![Just(Mode::TwoPass), Just(Mode::Restart), Just(Mode::FirstPass)],
            (window, undo, threshold) in (1..12usize, 0..8usize, 0.45..0.55f32),
            rounds in prop::collection::vec((prop::collection::vec(0..9usize, 1..4), 1..40usize), 1..20),
        ) {
            const WORDS: [&str; 9] =
                ["play", "some", "jazz", "by", "miles", "davis", "zither", "zithers", "?"];
            let tiny =
                if pretrained { crate::doctest::pretrained } else { crate::doctest::parts };
            let mut parts = crate::doctest::with_intents(tiny());
            parts.config.delay = delay;
            let model = parts.load().unwrap();
            let options = SessionOptions::new().mode(mode).window(window).undo(undo).threshold(threshold);
            let mut together = [(); 3].map(|()| model.session_with(options).unwrap());
            let mut alone = model.session_with(options).unwrap();
            let count = rounds.len();
            for (round, (words, fault)) in rounds.into_iter().enumerate() {
                if round + 1 < count {
                    for index in &words {
                        together.iter_mut().for_each(|session| session.begin_push(WORDS[*index]).unwrap());
                        alone.push(WORDS[*index]).unwrap();
                        interrupt(&mut together, fault)?;
                        together.iter_mut().for_each(|session| _ = session.take_update().unwrap());
                    }
                } else {
                    together.iter_mut().for_each(|session| session.begin_finish().unwrap());
                    alone.finish().unwrap();
                    interrupt(&mut together, fault)?;
                }
                for session in &mut together {
                    session.take_update().unwrap();
                    prop_assert_eq!(observe(session), observe(&alone));
                }
                // Words that are taken back show what the memory holds.
                let back = alone.undoable().min(words.len() - 1);
                if round + 1 < count {
                    alone.revoke(back).unwrap();
                    together.iter_mut().for_each(|session| _ = session.revoke(back).unwrap());
                }
            }
        }
    }

    /// Computes what sessions of equal words have to do; each batch panics once first, if it has so
    /// many points.
    fn interrupt(sessions: &mut [Session], fault: usize) -> std::result::Result<(), TestCaseError> {
        while let Some(work) = sessions[0].work() {
            let compute = match work {
                Work::Word => read,
                Work::Revision => revise,
            };
            let before: Vec<_> = sessions.iter().map(observe).collect();
            let mut company: Vec<&mut Session> = sessions.iter_mut().collect();
            faults::COUNTDOWN.set(fault);
            let computed = catch_unwind(AssertUnwindSafe(|| compute(&mut company)));
            faults::COUNTDOWN.set(0);
            if computed.is_err() {
                for (session, before) in company.iter().zip(before) {
                    prop_assert_eq!(observe(session), before);
                }
                compute(&mut company).unwrap();
            }
        }
        Ok(())
    }
}
