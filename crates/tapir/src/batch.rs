//! Many sessions at once: one word of each, or the revision that each waits for, in one product a matrix.
//!
//! This is Algorithm 1 of the paper, and the only implementation of it: a [`Session`] alone is a batch of one. A row of a
//! product does not depend on the rows beside it, to the bit, so neither do the labels of a session on its company.

use crate::model::{Recall, Scratch, Streams, with_scratch};
use crate::session::Step;
use crate::{Action, Error, Mode, Result, Session};

/// What a session has to compute next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The first pass over a word: [`read`].
    Word,
    /// The second pass, over all words: [`revise`].
    Revision,
}

/// Reads the next word of every session in one run of the first pass. Each must have [`Work::Word`], and all must be of
/// one model and mode; nothing is changed otherwise.
///
/// ```
/// use tapir::batch::{self, Work};
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// let (mut a, mut b) = (model.session(), model.session());
/// a.begin_push("play")?;
/// b.begin_update(["book", "a", "table"])?;
/// batch::read(&mut [&mut a, &mut b])?;
/// // The policy may want a revision now; until it is made, the answer is the first pass's.
/// if a.work() == Some(Work::Revision) {
///     println!("provisional: {:?}", a.answer().edits);
///     batch::revise(&mut [&mut a])?;
/// }
/// assert_eq!(a.work(), None);
/// println!("{:?}", a.answer().edits);
/// # Ok::<(), tapir::Error>(())
/// ```
pub fn read(sessions: &mut [&mut Session]) -> Result<()> {
    check(sessions, Work::Word)?;
    with_scratch(|scratch| read_with(sessions, scratch));
    Ok(())
}

/// Makes the revision that every session waits for in one run of the reviser. Each must have [`Work::Revision`], and all
/// must be of one model and mode; nothing is changed otherwise.
pub fn revise(sessions: &mut [&mut Session]) -> Result<()> {
    check(sessions, Work::Revision)?;
    with_scratch(|scratch| revise_with(sessions, scratch));
    Ok(())
}

fn check(sessions: &[&mut Session], work: Work) -> Result<()> {
    let Some(first) = sessions.first() else { return Ok(()) };
    for session in sessions {
        if session.work() != Some(work) {
            let reason = format!("a session has {:?} to do, expected {work:?}", session.work());
            return Err(Error::invalid("a batch", reason));
        }
        if !session.model.is(&first.model) || session.mode != first.mode {
            return Err(Error::invalid(
                "a batch",
                "its sessions are of several models or modes; expected one",
            ));
        }
    }
    Ok(())
}

/// The words at the head of each session's queue: processor, controller, policy, memory.
pub(crate) fn read_with(sessions: &mut [&mut Session], scratch: &mut Scratch) {
    let Some(Session { model, mode, .. }) = sessions.first().map(|session| &**session) else { return };
    let (model, mode) = (model.clone(), *mode);
    let mut streams = std::mem::take(&mut scratch.streams);
    streams.ids.clear();
    for session in &mut *sessions {
        let id = session.unread.pop_front().unwrap_or_default();
        session.tokens.push(&[id]);
        streams.ids.push(id);
    }
    match (mode, model.first_pass()) {
        (Mode::Restart, _) | (_, None) => {
            for session in &mut *sessions {
                session.logits.grow();
                session.stepped(Step { revised: true, policy: None });
            }
        }
        (mode, Some(first)) => {
            let labels = model.labels().len();
            let size = first.processor.state_size();
            streams.before.clear();
            for session in &*sessions {
                streams.before.extend_from_slice(session.states.row(session.states.len() - 1));
            }
            streams.after.resize(sessions.len() * size, 0.0);
            streams.logits.resize(sessions.len() * labels, 0.0);
            let Streams { ids, before, after, logits, .. } = &mut streams;
            first.processor.step(ids, before, after, logits, scratch);
            let rows = after.chunks_exact(size).zip(logits.chunks_exact(labels));
            for (session, (state, logits)) in sessions.iter_mut().zip(rows) {
                session.states.push(state);
                session.logits.push(logits);
            }
            match first.revision.as_ref().filter(|_| mode == Mode::TwoPass) {
                None => sessions.iter_mut().for_each(|session| session.stepped(Step::default())),
                Some(revision) => {
                    let recall = |stream: usize| {
                        let session = &*sessions[stream];
                        let t = session.tokens.len();
                        let entries = revision.memory.size().min(t - 1);
                        Recall {
                            h: first.processor.top(session.states.row(t)),
                            memory: session.memory.rows(t - 1 - entries..t - 1),
                            cells: session.controls.rows(t - entries.max(1)..t),
                        }
                    };
                    let size = revision.controller.state_size();
                    let states = &mut streams.after;
                    states.resize(sessions.len() * size, 0.0);
                    revision.controller.step(sessions.len(), recall, states, scratch);
                    let hidden = revision.controller.hidden();
                    let rows = states.chunks_exact(size).zip(scratch.k.chunks_exact(hidden));
                    for (session, (state, k)) in sessions.iter_mut().zip(rows) {
                        session.controls.push(state);
                        session.memory.grow();
                        let policy = revision.policy.value(k);
                        let revised = Action::decide(policy, session.threshold) == Action::Revise;
                        session.stepped(Step { revised, policy: Some(policy) });
                    }
                }
            }
        }
    }
    scratch.streams = streams;
    // A session that revises writes its memory afterwards.
    remember_with(sessions, |session| usize::from(!session.pending), scratch);
}

/// The second pass of each session: all logits in its window anew, and the memory with them.
pub(crate) fn revise_with(sessions: &mut [&mut Session], scratch: &mut Scratch) {
    let Some(model) = sessions.first().map(|session| session.model.clone()) else { return };
    let Some(reviser) = model.reviser() else { return };
    let mut streams = std::mem::take(&mut scratch.streams);
    let Streams { ids, ends, .. } = &mut streams;
    ids.clear();
    ends.clear();
    for session in sessions.iter().filter(|session| session.kept_logits().is_none()) {
        ids.extend_from_slice(session.input());
        ends.push(ids.len());
    }
    if !ids.is_empty() {
        reviser.run(ids, ends, scratch);
    }
    let mut at = 0;
    for session in &mut *sessions {
        let values = session.input().len() * model.labels().len();
        if session.kept_logits().is_some() {
            session.rewrite(None);
        } else {
            session.rewrite(Some(&scratch.logits[at..at + values]));
            at += values;
        }
    }
    scratch.streams = streams;
    remember_with(sessions, |session| session.memory_size().min(session.tokens.len()), scratch);
    for session in sessions {
        session.revised();
    }
}

/// Writes the last entries of each session's memory, as many as `count` says, from the states and logits of their steps.
pub(crate) fn remember_with(
    sessions: &mut [&mut Session],
    count: impl Fn(&Session) -> usize,
    scratch: &mut Scratch,
) {
    let Some(first) = sessions.first().filter(|session| session.mode == Mode::TwoPass) else { return };
    let model = first.model.clone();
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
        let (t, entries) = (session.tokens.len(), count(session));
        for step in t - entries + 1..=t {
            scratch.h.extend_from_slice(first.processor.top(session.states.row(step)));
        }
        streams.logits.extend_from_slice(session.logits.rows(t - entries..t));
        rows += entries;
    }
    if rows > 0 {
        let size = revision.controller.memory_size();
        streams.after.resize(rows * size, 0.0);
        revision.memory.write(&revision.controller, &streams.logits, rows, &mut streams.after, scratch);
        let mut at = 0;
        for session in sessions {
            let (t, entries) = (session.tokens.len(), count(session));
            let written = &streams.after[at * size..(at + entries) * size];
            session.memory.rows_mut(t - entries..t).copy_from_slice(written);
            at += entries;
        }
    }
    scratch.streams = streams;
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let options = crate::SessionOptions::new().mode(Mode::FirstPass);
        let mut d = model.session_with(options).unwrap();
        d.begin_push("play").unwrap();
        assert!(read(&mut [&mut a, &mut d]).is_err());
        assert_eq!((a.words(), c.words(), d.words()), (0, 0, 0));
        read(&mut [&mut a, &mut b]).unwrap();
        assert_eq!((a.words(), b.words()), (1, 1));
        read(&mut []).unwrap();
        revise(&mut []).unwrap();
    }
}
