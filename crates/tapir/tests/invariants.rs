//! What must hold for every model and every sequence of operations.
#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use support::{Operation, WORDS, operations, parts, roomy_parts, word};
use tapir::batch::{self, Work};
use tapir::{Error, FinalPass, Label, Mode, Model, Precision, Session, SessionOptions};

/// Everything that can be seen of a session from word `first` on, floats as bits.
fn observe(
    session: &Session,
    first: usize,
) -> (usize, Vec<Label>, Vec<Vec<u32>>, Vec<tapir::Action>) {
    let skip = first - session.first();
    let steps = (first..session.words()).map(|step| session.step_logits(step).unwrap().to_vec());
    // What it says of the intent, and of how far all of it can be trusted, behind the logits of its
    // steps.
    let trust = session.stabilities().into_iter().flat_map(|all| all.into_iter().skip(skip));
    let trust = trust.chain(session.intent_stability()).chain(session.in_domain());
    let rows = steps.chain(session.intent_distribution()).chain([trust.collect()]);
    let logits = rows.map(|row| bits(&row)).collect();
    let actions = session.actions().split_off(skip);
    (
        session.words(),
        session.labels()[skip.min(session.labels().len())..].to_vec(),
        logits,
        actions,
    )
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A session in the state that reading these words leaves.
fn fresh(session: Session, words: &[usize]) -> Session {
    let mut session = session;
    for index in words {
        session.push(&word(*index)).unwrap();
    }
    session
}

/// How sure a recogniser is of a word.
fn heard(index: usize) -> f32 {
    [1.0, 0.75, 0.99, 0.0][index % 4]
}

/// The same, if the recogniser says how sure it is of its words.
fn fresh_as_heard(mut session: Session, words: &[usize]) -> Session {
    for index in words {
        session.push_with(&word(*index), heard(*index)).unwrap();
    }
    session
}

/// What a session shows, and what it will answer to a few more words: its hidden state too.
fn assert_same(a: &mut Session, b: &mut Session) -> Result<(), TestCaseError> {
    let first = a.first().max(b.first());
    prop_assert_eq!(observe(a, first), observe(b, first));
    prop_assert_eq!(a.probabilities().len(), a.labels().len());
    for index in [3, 1, 4, 1] {
        let (x, y) = (a.push(&word(index)).unwrap(), b.push(&word(index)).unwrap());
        prop_assert_eq!(x.policy.map(f32::to_bits), y.policy.map(f32::to_bits));
        prop_assert_eq!(&x.edits, &y.edits);
        prop_assert_eq!(x.intent.is_some(), a.model().intents().is_some());
        let told = |update: &tapir::Update| {
            update
                .intent
                .as_ref()
                .map(|intent| (intent.label.clone(), intent.probability.to_bits()))
        };
        prop_assert_eq!(told(&x), told(&y));
    }
    let first = a.first().max(b.first());
    prop_assert_eq!(observe(a, first), observe(b, first));
    Ok(())
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![4 => Just(Mode::TwoPass), 1 => Just(Mode::Restart), 1 => Just(Mode::FirstPass)]
}

proptest! {
    #![proptest_config(support::cases(64))]

    /// Whatever is pushed, taken back and replaced: the session is, to the bit, one that read only
    /// what remains; replaying the edits gives its labels; what was committed is never edited; what
    /// is refused changes nothing.
    #[test]
    fn every_history_is_the_history_of_its_words(
        parts in parts(),
        operations in operations(60),
        mode in modes(),
        window in 1..30usize,
        undo in 0..12usize,
    ) {
        let model = parts.load().unwrap();
        let mut options = SessionOptions::new().mode(mode).window(window).undo(undo);
        if model.config().calibration.labels.is_some() {
            options = options.settled(0.7);
        }
        let start = || model.session_with(options).unwrap();
        let mut session = start();
        let mut words: Vec<usize> = Vec::new();
        let mut screen: Vec<Label> = Vec::new();
        let mut settled: Vec<bool> = Vec::new();
        let mut committed = 0;
        for operation in operations {
            let before = observe(&session, session.first());
            let (result, after) = match &operation {
                Operation::Push(index) => {
                    let result = session.push_with(&word(*index), heard(*index));
                    (result, words.iter().copied().chain([*index]).collect())
                }
                Operation::Revoke(n) => (session.revoke(*n), words[..words.len().saturating_sub(*n)].to_vec()),
                Operation::Update(keep, rest) => {
                    let hypothesis: Vec<usize> = words.iter().take(*keep).chain(rest).copied().collect();
                    let said = hypothesis.iter().map(|index| (word(*index), heard(*index)));
                    (session.update_with(said), hypothesis)
                }
                Operation::Reset => {
                    session.reset();
                    (words, screen, committed) = (Vec::new(), Vec::new(), 0);
                    settled.clear();
                    continue;
                }
            };
            match result {
                Ok(update) => {
                    prop_assert_eq!(update.committed, session.committed());
                    prop_assert!(update.committed >= committed, "a commitment was withdrawn");
                    prop_assert!(update.edits.iter().all(|edit| edit.position >= committed), "a committed label was edited");
                    for edit in &update.edits {
                        prop_assert_eq!(edit.old.as_ref(), screen.get(edit.position), "an edit names the wrong old label");
                        prop_assert!(edit.probability > 0.0 && edit.probability <= 1.0);
                    }
                    update.apply(&mut screen);
                    committed = update.committed;
                    // A label settles once, until it is edited or its word is taken back.
                    let shared = words.iter().zip(&after).take_while(|(a, b)| a == b).count();
                    settled.truncate(shared.saturating_sub(model.config().delay));
                    settled.resize(screen.len(), false);
                    update.edits.iter().for_each(|edit| settled[edit.position] = false);
                    let now = update.settled.unwrap_or_default();
                    for position in now.words {
                        let stability = session.stability(position);
                        prop_assert!(position < session.first() || stability.is_some_and(|it| it >= 0.7));
                        prop_assert!(!std::mem::replace(&mut settled[position], true), "settled twice");
                    }
                    for span in now.spans {
                        prop_assert!(settled[span.start..=span.end].iter().all(|settled| *settled));
                    }
                    words = after;
                }
                Err(Error::Undo { asked, available }) => {
                    prop_assert!(asked > available);
                    prop_assert_eq!(observe(&session, session.first()), before);
                }
                Err(Error::Committed { .. }) => {
                    prop_assert!(committed > 0);
                    prop_assert_eq!(observe(&session, session.first()), before);
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
            prop_assert_eq!(session.words(), words.len());
            prop_assert_eq!(&session.labels()[..], &screen[session.first()..]);
        }
        assert_same(&mut session, &mut fresh_as_heard(start(), &words))?;
    }

    /// Sessions that are computed together give, to the bit, what each gives alone, in whatever
    /// company and order; a provisional answer and the one after it make the same change as the one
    /// answer of a session alone.
    #[test]
    fn company_changes_nothing(
        parts in parts(),
        histories in prop::collection::vec((operations(12), 0.2..0.8f32), 1..7),
        mode in modes(),
        order in any::<u64>(),
    ) {
        use tapir::batch::{self, Work};
        let model = parts.load().unwrap();
        let options = SessionOptions::new().mode(mode).window(12).undo(40);
        let start = |threshold| model.session_with(options.threshold(threshold)).unwrap();
        let mut together: Vec<Session> = histories.iter().map(|(_, threshold)| start(*threshold)).collect();
        let mut alone: Vec<Session> = histories.iter().map(|(_, threshold)| start(*threshold)).collect();
        let mut screens: Vec<Vec<Label>> = vec![Vec::new(); histories.len()];
        let mut words: Vec<Vec<usize>> = vec![Vec::new(); histories.len()];
        let mut order = order;
        let mut draw = move || {
            order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order >> 33
        };
        for turn in 0..12 {
            for (i, (operations, _)) in histories.iter().enumerate() {
                let (session, words) = (&mut together[i], &mut words[i]);
                match operations.get(turn) {
                    Some(Operation::Push(index)) => {
                        words.push(*index);
                        session.begin_push(&word(*index)).unwrap();
                        alone[i].push(&word(*index)).unwrap();
                    }
                    Some(Operation::Update(keep, rest)) => {
                        *words = words.iter().take(*keep).chain(rest).copied().collect();
                        // What is committed cannot change; both must say so.
                        let (a, b) = (
                            session.begin_update(words.iter().map(|index| word(*index))),
                            alone[i].update(words.iter().map(|index| word(*index))),
                        );
                        prop_assert_eq!(a.is_ok(), b.is_ok());
                    }
                    Some(Operation::Reset) => {
                        session.reset();
                        alone[i].reset();
                        words.clear();
                        screens[i].clear();
                    }
                    _ => {}
                }
            }
            // A few of those with something to do, until none has: some are answered provisionally
            // in between.
            loop {
                let work = if draw() % 2 == 0 { Work::Word } else { Work::Revision };
                let other = if work == Work::Word { Work::Revision } else { Work::Word };
                let work = [work, other].into_iter().find(|work| together.iter().any(|s| s.work() == Some(*work)));
                let Some(work) = work else { break };
                let mut company: Vec<&mut Session> =
                    together.iter_mut().filter(|s| s.work() == Some(work)).filter(|_| draw() % 3 > 0).collect();
                match work {
                    Work::Word => batch::read(&mut company).unwrap(),
                    Work::Revision => batch::revise(&mut company).unwrap(),
                }
                for (session, screen) in together.iter_mut().zip(&mut screens) {
                    if draw() % 2 == 0 && let Some(update) = session.take_provisional() {
                        prop_assert_eq!(update.action, None);
                        update.apply(screen);
                    }
                }
            }
            for (i, session) in together.iter_mut().enumerate() {
                session.take_update().unwrap().apply(&mut screens[i]);
                prop_assert_eq!(&session.labels()[..], &screens[i][session.first()..]);
                let first = session.first().max(alone[i].first());
                prop_assert_eq!(observe(session, first), observe(&alone[i], first));
            }
        }
    }

    /// Words are what is written, not the row of a table that stands for them: a hypothesis keeps
    /// what is the same text, and reads everything else, unknown words too.
    #[test]
    fn a_hypothesis_keeps_the_words_that_are_the_same(
        parts in parts(),
        hypotheses in prop::collection::vec(prop::collection::vec(WORDS - 1..WORDS + 4, 0..8), 2..6),
    ) {
        let model = parts.load().unwrap();
        let options = SessionOptions::new().threshold(1.0);
        let mut session = model.session_with(options).unwrap();
        for pair in hypotheses.windows(2) {
            session.update(pair[0].iter().map(|index| word(*index))).unwrap();
            session.begin_update(pair[1].iter().map(|index| word(*index))).unwrap();
            let shared = pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count();
            prop_assert_eq!((session.words(), session.unread()), (shared, pair[1].len() - shared));
            while session.work().is_some() {
                tapir::batch::read(&mut [&mut session]).unwrap();
            }
            session.take_update().unwrap();
            let alone = fresh(model.session_with(options).unwrap(), &pair[1]);
            prop_assert_eq!(observe(&session, 0), observe(&alone, 0));
        }
    }

    /// What was given is computed by a batch, and by nothing else: until then a session takes
    /// nothing, answers nothing, and says so.
    #[test]
    fn a_busy_session_refuses_and_changes_nothing(
        parts in parts(),
        words in prop::collection::vec(0..WORDS + 2, 1..6),
        threshold in 0.0..=1.0f32,
    ) {
        use tapir::batch::{self, Work};
        let model = parts.load().unwrap();
        let options = SessionOptions::new().threshold(threshold);
        let start = || model.session_with(options).unwrap();
        let (mut session, mut alone) = (start(), start());
        for finished in [false, true] {
            if finished {
                session.begin_finish().unwrap();
                alone.finish().unwrap();
            } else {
                session.begin_update(words.iter().map(|index| word(*index))).unwrap();
                alone.update(words.iter().map(|index| word(*index))).unwrap();
            }
            while let Some(work) = session.work() {
                let before = (observe(&session, 0), session.unread());
                let refused = [
                    session.push("more").err(),
                    session.push_id(3).err(),
                    session.begin_push("more").err(),
                    session.update(["other"]).err(),
                    session.begin_update(["other"]).err(),
                    session.revoke(1).err(),
                    session.begin_revoke(0).err(),
                    session.finish().err(),
                    session.begin_finish().err(),
                ];
                for error in refused {
                    let expected = match error {
                        Some(Error::Busy { work: said }) => !finished && said == work,
                        Some(Error::Finished) => finished,
                        _ => false,
                    };
                    prop_assert!(expected, "{error:?}");
                }
                let busy = matches!(session.take_update(), Err(Error::Busy { .. }));
                prop_assert!(busy);
                prop_assert_eq!((observe(&session, 0), session.unread()), before);
                prop_assert_eq!(session.work(), Some(work));
                match work {
                    Work::Word => batch::read(&mut [&mut session]).unwrap(),
                    Work::Revision => batch::revise(&mut [&mut session]).unwrap(),
                }
            }
            session.take_update().unwrap();
            prop_assert_eq!(observe(&session, 0), observe(&alone, 0));
        }
    }

    /// Undo as far as it is promised, and no further.
    #[test]
    fn undo_reaches_as_far_as_it_says(parts in parts(), n in 0..60usize, undo in 0..12usize) {
        let model = parts.load().unwrap();
        let words: Vec<usize> = (0..n).map(|i| i * 7 % 20).collect();
        let start = || model.session_with(SessionOptions::new().window(9).undo(undo)).unwrap();
        let mut session = fresh(start(), &words);
        prop_assert_eq!(session.undoable(), undo.min(n));
        prop_assert!(session.revoke(undo + 1).is_err());
        session.revoke(undo.min(n)).unwrap();
        assert_same(&mut session, &mut fresh(start(), &words[..n - undo.min(n)]))?;
    }

    /// τ = 0 is the restart-incremental reviser at every prefix, τ = 1 the first pass; both to the
    /// bit.
    #[test]
    fn the_ends_of_the_threshold_are_the_passes_alone(parts in parts(), words in prop::collection::vec(0..20usize, 1..30)) {
        let model = parts.load().unwrap();
        for (threshold, mode) in [(0.0, Mode::Restart), (1.0, Mode::FirstPass)] {
            let options = SessionOptions::new().threshold(threshold).final_pass(FinalPass::Policy);
            let mut tapir = model.session_with(options).unwrap();
            let mut alone = model.session_with(SessionOptions::new().mode(mode)).unwrap();
            // How far it can be trusted is not the same: a first pass alone has no policy to ask.
            let observe = |session: &Session| {
                let mut seen = observe(session, 0);
                seen.2.pop();
                seen
            };
            for index in &words {
                tapir.push(&word(*index)).unwrap();
                alone.push(&word(*index)).unwrap();
                prop_assert_eq!(observe(&tapir), observe(&alone));
            }
            tapir.finish().unwrap();
            alone.finish().unwrap();
            prop_assert_eq!(observe(&tapir), observe(&alone));
        }
    }

    /// The last revision gives what the reviser says of the whole sentence, and its edits are told.
    #[test]
    fn kept_revisions_change_nothing(
        parts in parts(),
        words in prop::collection::vec(0..20usize, 1..30),
        thresholds in prop::collection::vec(0.0..1.0f32, 1..5),
    ) {
        let model = Model::from_parts(parts).unwrap();
        let mut kept = model.session_with(SessionOptions::new().keep_revisions()).unwrap();
        for threshold in thresholds {
            kept.set_threshold(threshold).unwrap();
            kept.reset();
            kept = fresh(kept, &words);
            let options = SessionOptions::new().threshold(threshold);
            let mut plain = fresh(model.session_with(options).unwrap(), &words);
            assert_same(&mut kept, &mut plain)?;
        }
    }

    #[test]
    fn finish_ends_with_the_reviser(parts in roomy_parts(), words in prop::collection::vec(0..20usize, 0..20)) {
        let model = parts.load().unwrap();
        let mut screen = Vec::new();
        let mut session = model.session();
        for index in &words {
            session.push(&word(*index)).unwrap().apply(&mut screen);
        }
        let end = session.finish().unwrap();
        end.update.apply(&mut screen);
        let restart = SessionOptions::new().mode(Mode::Restart);
        let mut reviser = fresh(model.session_with(restart).unwrap(), &words);
        prop_assert_eq!(&end.labels, &reviser.finish().unwrap().labels);
        prop_assert_eq!(&screen, &end.labels);
        prop_assert_eq!(end.labels.len(), words.len());
        prop_assert!(matches!(session.push("more"), Err(Error::Finished)));
        session.reset();
        assert_same(&mut session, &mut model.session())?;
    }

    /// Files of every precision load, and run close to the f32 model of the same values.
    #[test]
    fn every_precision_runs(parts in parts(), words in prop::collection::vec(0..20usize, 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        for precision in [Precision::F32, Precision::F16, Precision::Int8] {
            let stored = parts.quantize(precision).unwrap();
            let path = dir.path().join(format!("{precision:?}"));
            stored.save(&path).unwrap();
            let first_pass = SessionOptions::new().threshold(1.0);
            let mut session = Model::open(&path).unwrap().session_with(first_pass).unwrap();
            let same = stored.quantize(Precision::F32).unwrap().load().unwrap();
            let mut same = same.session_with(first_pass).unwrap();
            for index in &words {
                session.push(&word(*index)).unwrap();
                same.push(&word(*index)).unwrap();
            }
            for step in 0..words.len() {
                for (a, b) in session.step_logits(step).unwrap().iter().zip(same.step_logits(step).unwrap()) {
                    prop_assert!((a - b).abs() < 5e-3, "{precision:?}: {a} is not {b}");
                }
            }
        }
    }
}

#[test]
fn the_last_revision_is_the_models_choice_unless_a_session_is_told_otherwise() {
    let revises = |own: FinalPass, options: SessionOptions| {
        let mut parts = tapir::doctest::parts();
        parts.config.final_pass = own;
        let config = tapir::Config::from_json(&parts.config.to_json(), "config.json").unwrap();
        assert_eq!(config, parts.config);
        let mut session = parts.load().unwrap().session_with(options.threshold(1.0)).unwrap();
        session.push("play").unwrap();
        session.finish().unwrap().update.revised()
    };
    let options = SessionOptions::new();
    for own in [FinalPass::Revise, FinalPass::Policy] {
        assert_eq!(revises(own, options), own == FinalPass::Revise);
        assert!(revises(own, options.final_pass(FinalPass::Revise)));
        assert!(!revises(own, options.final_pass(FinalPass::Policy)));
    }
}

#[test]
fn sessions_can_be_sent_and_models_shared() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Session>();
    shared::<Model>();
}

#[test]
fn a_million_words_run_in_bounded_memory() {
    let model = Model::from_parts(tapir::doctest::parts()).unwrap();
    let options = SessionOptions::new().window(16).undo(8).threshold(0.52);
    let mut session = model.session_with(options).unwrap();
    let mut bytes = 0;
    let (mut revisions, words) = (0usize, if cfg!(debug_assertions) { 100_000 } else { 1_000_000 });
    for i in 0..words {
        let update = session.push(["play", "some", "jazz", "by", "miles"][i * i % 5]).unwrap();
        revisions += usize::from(update.revised());
        if i == 1_000 {
            bytes = session.bytes();
        }
    }
    assert!(
        revisions > 0 && revisions < words,
        "{revisions} revisions: the test wants both actions"
    );
    assert!(
        session.bytes() <= bytes * 2,
        "{} bytes after a thousand words, {} at the end",
        bytes,
        session.bytes()
    );
    assert_eq!(session.committed(), words - 8 - 16);
}

#[test]
fn updates_survive_json() {
    let model = Model::from_parts(tapir::doctest::parts()).unwrap();
    let mut session = model.session();
    let update = session.push("play").unwrap();
    let json = serde_json::to_string(&update).unwrap();
    assert_eq!(serde_json::from_str::<tapir::Update>(&json).unwrap(), update);
    let finish = session.finish().unwrap();
    let json = serde_json::to_string(&finish).unwrap();
    assert_eq!(serde_json::from_str::<tapir::Finish>(&json).unwrap(), finish);
}

/// A whole text given at once takes memory for its words and labels, not for every state and every
/// revision on the way: one client's long texts would fill a server.
#[test]
fn a_long_hypothesis_takes_little_memory() {
    let model = tapir::doctest::parts().load().unwrap();
    let bytes = |words: usize| {
        let options = SessionOptions::new().threshold(0.0).window(64);
        let mut session = model.session_with(options).unwrap();
        session.begin_update((0..words).map(|word| format!("w{word}"))).unwrap();
        while let Some(work) = session.work() {
            match work {
                Work::Word => batch::read(&mut [&mut session]).unwrap(),
                Work::Revision => batch::revise(&mut [&mut session]).unwrap(),
            }
        }
        session.bytes()
    };
    let (short, long) = (bytes(500), bytes(4_000));
    // Identity, row, logits, step and label of a word; twice, for the room that vectors leave.
    let word = 2 * (16 + 4 + 4 * model.labels().len() + 16 + 2 + 2 + 24);
    assert!(long - short < 3_500 * word, "{} bytes per word", (long - short) / 3_500);
}
