"""A session from Python is the session of Rust: exact undo, edits that replay, the same labels."""

from __future__ import annotations

import copy
import gc
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapir

#: Words that the model knows and words that it does not.
WORDS = st.sampled_from("play add step to me some jazz by miles davis the 5 zzyzx ünter".split())
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), WORDS),
        st.tuples(st.just("update"), st.lists(WORDS, max_size=8)),
        st.tuples(st.just("revoke"), st.integers(0, 4)),
    ),
    max_size=14,
)


def test_a_sentence_word_by_word(snips: tapir.Model) -> None:
    """Recorded from the command line: `tapir tag --model snips-small --steps`."""
    session = snips.session()
    words = "add step to me to the fifty clasicos playlist".split()
    updates = [session.push(word) for word in words]
    # A model without intents says nothing of them.
    assert snips.intents is None and session.intent is None and updates[0].intent is None
    assert session.intent_distribution() is None
    actions = "WRITE WRITE WRITE REVISE REVISE REVISE REVISE REVISE REVISE".split()
    assert [update.action for update in updates] == actions
    policy = [0.000, 0.003, 0.007, 0.262, 0.283, 0.202, 0.171, 0.230, 0.123]
    assert [update.policy for update in updates] == pytest.approx(policy, abs=6e-4)
    change, new = updates[3].edits
    assert (change.position, change.old, change.label) == (2, "O", "I-entity_name")
    assert (new.position, new.old, new.label) == (3, None, "I-entity_name")
    end = session.finish()
    assert end.labels == (
        "O B-entity_name I-entity_name I-entity_name O O B-playlist I-playlist O".split()
    )
    found = [(span.label, span.start, span.end) for span in end.spans]
    assert found == [("entity_name", 1, 4), ("playlist", 6, 8)]
    assert session.committed == len(session) == 9


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_edits_replay_and_undo_is_exact(operations: list[tuple[str, object]]) -> None:
    model = tapir.Model.load("snips-small")
    session, labels, words = model.session(), list[str](), list[str]()
    for name, value in operations:
        if name == "push":
            assert isinstance(value, str)
            update = session.push(value)
            words.append(value)
        elif name == "update":
            assert isinstance(value, list)
            update = session.update(value)
            words = list(value)
        else:
            assert isinstance(value, int)
            if value > session.undoable:
                with pytest.raises(tapir.Error, match="cannot be taken back"):
                    session.revoke(value)
                continue
            update = session.revoke(value)
            words = words[: len(words) - value]
        update.apply(labels)
        assert labels == session.labels
        assert update.length == len(labels) == len(session) == len(words)
    fresh = model.session()
    fresh.update(words)
    assert fresh.labels == session.labels
    assert np.array_equal(fresh.probabilities, session.probabilities)
    assert fresh.finish().labels == session.finish().labels


def test_a_text_is_split_by_the_model(snips: tapir.Model, pos: tapir.Model) -> None:
    session = snips.session()
    session.update("What's on, Tomorrow?")
    assert len(session) == 4
    assert pos.words("Don't stop.") == ["Do", "n't", "stop", "."]


def test_probabilities_are_numpy(snips: tapir.Model) -> None:
    session = snips.session()
    session.update("play some jazz")
    values = session.probabilities
    assert values.dtype == np.float32 and values.shape == (3,)
    assert values.flags.owndata is False, "numpy looks at the memory that Rust has filled"
    assert ((values > 0) & (values <= 1)).all()
    row = session.distribution(2)
    assert row is not None
    assert row.sum() == pytest.approx(1, abs=1e-5)
    assert snips.labels[int(row.argmax())] == session.labels[2] == "B-genre"
    assert row.max() == pytest.approx(values[2], abs=1e-6)
    assert session.distribution(3) is None and session.distribution(2**62) is None


def test_what_is_settled_is_said_once(snips: tapir.Model) -> None:
    words = "add step to me to the fifty clasicos playlist".split()
    session = snips.session(settled=0.95)
    settled: list[int] = []
    spans: list[tapir.Span] = []
    for word in words:
        update = session.push(word)
        for edit in update.edits:
            assert edit.stability is not None and 0 < edit.stability <= 1
            settled = [position for position in settled if position != edit.position]
        if update.settled:
            assert not set(settled) & set(update.settled.words)
            settled += update.settled.words
            spans += update.settled.spans
            assert copy.copy(update.settled) == update.settled
    stabilities = session.stabilities
    assert stabilities is not None and stabilities.shape == (len(words),)
    for span in session.spans:
        stability = session.span_stability(span)
        assert stability is not None and 0 < stability <= 1
    end = session.finish()
    if end.update.settled:
        spans += end.update.settled.spans
    assert {(span.start, span.end) for span in end.spans} <= {(s.start, s.end) for s in spans}
    assert session.in_domain is None, "the model knows no intents"
    with pytest.raises(tapir.Error, match="settled"):
        snips.session(settled=0)


def test_thresholds_and_modes(snips: tapir.Model) -> None:
    always = snips.session(threshold=0)
    never = snips.session(threshold=1)
    words = "add step to me".split()
    assert [always.push(word).action for word in words] == ["REVISE"] * 4
    assert [never.push(word).action for word in words] == ["WRITE"] * 4
    first, restart = snips.session(mode="first-pass"), snips.session(mode="restart")
    assert first.update(words).policy is None
    assert first.labels == never.labels
    restart.update(words)
    assert restart.labels == always.labels
    assert (first.mode, restart.mode, always.mode) == ("first-pass", "restart", "two-pass")
    always.set_threshold(1)
    assert always.push("to").action == "WRITE"


def test_a_finished_session_starts_anew_after_reset(snips: tapir.Model) -> None:
    session = snips.session()
    session.push("play")
    session.finish()
    with pytest.raises(tapir.Error, match="finished"):
        session.push("jazz")
    session.reset()
    assert len(session) == 0 and session.labels == []
    assert session.push("play").step == 1


def test_a_long_session_forgets_and_commits(snips: tapir.Model) -> None:
    session = snips.session(window=16, undo=4, threshold=1)
    labels: list[str] = []
    for i in range(300):
        update = session.push(["play", "some", "jazz"][i % 3])
        update.apply(labels)
        assert session.undoable <= 4
    assert session.first > 0 and update.committed == 300 - 4 - 16
    assert labels[session.first :] == session.labels
    with pytest.raises(tapir.Error, match="committed"):
        session.update(["other"])
    size = session.nbytes
    for _ in range(300):
        session.push("play")
    assert session.nbytes < 2 * size


def test_reprs_teach(snips: tapir.Model) -> None:
    session = snips.session()
    session.push("add")
    session.push("step")
    session.push("to")
    update = session.push("me")
    assert repr(update) == (
        "Update(step=4, REVISE, policy=0.262, edits=[2: O -> I-entity_name, "
        f"{update.edits[0].probability:.2f}; 3: I-entity_name, {update.edits[1].probability:.2f}], "
        "length=4, committed=0)"
    )
    assert repr(update.edits[0]).startswith("Edit(2: O -> I-entity_name, 0.")
    assert repr(session) == (
        "<tapir.Session two-pass, 4 words: [O B-entity_name I-entity_name I-entity_name]>"
    )
    assert repr(session.spans) == "[Span('entity_name', 1, 4)]"


def test_what_is_frozen_stays(snips: tapir.Model) -> None:
    update = snips.session().push("play")
    for thing, field in ((update, "step"), (update.edits[0], "label")):
        with pytest.raises(AttributeError):
            setattr(thing, field, 1)
    match update.edits[0]:
        case tapir.Edit(position, label, None):
            assert (position, label) == (0, "O")
        case _:
            pytest.fail("an edit matches by position, label and old")
    assert copy.copy(snips) is snips and copy.deepcopy(snips) is snips


def test_threads_share_a_session_in_turns(snips: tapir.Model) -> None:
    session = snips.session(undo=1000)
    threads = [
        threading.Thread(target=lambda: [session.push("jazz") for _ in range(25)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session) == 100


def test_python_goes_on_while_one_waits_for_a_session(snips: tapir.Model) -> None:
    """One thread computes, one asks the same session, and a third one counts meanwhile."""
    session, words = snips.session(threshold=0), ["play", "some", "jazz"] * 100
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    def compute() -> None:
        while not stop.is_set():
            session.update(words)
            session.reset()

    threads = [threading.Thread(target=work) for work in (count, compute)]
    for thread in threads:
        thread.start()
    try:
        asked = (
            lambda: session.labels, lambda: session.spans, lambda: len(session),
            lambda: repr(session), lambda: session.set_threshold(0), lambda: session.stabilities,
        )
        time.sleep(0.1)
        for ask in asked:
            started, before = time.monotonic(), counted[0]
            while time.monotonic() - started < 0.3:
                ask()
            assert counted[0] - before > 20
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_session_keeps_its_model_and_nothing_leaks() -> None:
    model = tapir.Model.load("snips-small")
    session, watched = model.session(), weakref.ref(model)
    del model
    gc.collect()
    assert session.push("play").step == 1
    assert session.model is watched()
    del session
    gc.collect()
    assert watched() is None


def test_a_recogniser_says_how_sure_it_is_of_its_words(snips: tapir.Model) -> None:
    session = snips.session(settled=0.95)
    assert session.push("play", stability=0.5).settled is None
    assert session.stabilities is not None and session.stabilities[0] <= 0.5
    session.update(["play", "some", "jazz"], stability=[1.0, 0.25, 0.75])
    assert (session.stabilities <= [1.0, 0.25, 0.75]).all()
    session.update("play some jazz")
    assert session.stabilities[1] > 0.25
    # Of numpy, as `stabilities` is itself; and of any other iterable.
    doubts = session.stabilities * 0.5
    session.update("play some jazz", stability=doubts)
    assert (session.stabilities <= doubts).all()
    session.update("play some jazz", stability=iter([1.0, 0.25, 0.75]))
    assert (session.stabilities <= [1.0, 0.25, 0.75]).all()
    for wrong in (1.5, [1.0], float("nan")):
        with pytest.raises(ValueError, match="stabilit"):
            session.update(["play", "some"], stability=wrong)
    for odd in ("0.5", ["0.5"] * 3, None):
        with pytest.raises(TypeError):
            session.update("play some jazz", stability=odd)  # type: ignore[arg-type]
    assert len(session.labels) == 3
