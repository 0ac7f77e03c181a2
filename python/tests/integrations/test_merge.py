"""Two updates as one."""

from __future__ import annotations

from tapir import Edit, Intent, Settled, Span, Update
from tapir.integrations._merge import merge


def test_edits_are_those_of_the_end() -> None:
    labels = ["O", "B-a", "O", "O"]
    first = Update(
        3, "WRITE", 0.2, [Edit(0, "B-x", "O"), Edit(1, "O", "B-a", 0.5), Edit(2, "B-b", "O")], 3
    )
    then = Update(3, "REVISE", None, [Edit(1, "B-c", "O", 0.9, 0.8), Edit(2, "O", "B-b")], 3, 3)
    both = merge(labels, first, then)
    assert both.edits == (Edit(0, "B-x", "O"), Edit(1, "B-c", "B-a", 0.9, 0.8))
    assert (both.step, both.action, both.policy) == (3, "REVISE", None)
    assert (both.length, both.committed) == (3, 3)
    once, twice = list(labels), list(labels)
    both.apply(once)
    first.apply(twice)
    then.apply(twice)
    assert once == twice == ["B-x", "B-c", "O"]


def test_without_a_last_revision_the_last_word_says_what_was_chosen() -> None:
    both = merge([], Update(1, "WRITE", 0.25, [Edit(0, "O")], 1), Update(1, length=1, committed=1))
    assert (both.action, both.policy, both.edits, both.committed) == (
        "WRITE", 0.25, (Edit(0, "O"),), 1,
    )


def test_a_delayed_model_labels_its_last_words_at_the_end() -> None:
    first = Update(4, "WRITE", 0.2, [Edit(2, "O", "B-a")], 3)
    then = Update(5, "WRITE", 0.1, [Edit(3, "B-b")], 4, 4)
    edits = merge(["O", "O", "B-a", "O", "O"], first, then).edits
    assert edits == (Edit(2, "O", "B-a"), Edit(3, "B-b", "O"))


def test_what_changed_again_has_settled_anew_or_not_at_all() -> None:
    spans = [Span("a", 0, 2), Span("b", 3, 4), Span("c", 6, 7)]
    first = Update(8, length=8, settled=Settled([0, 1, 2, 3, 4, 6, 7], spans, intent=True))
    # The word behind the span b is another; one word of c is said anew.
    then = Update(
        8, "REVISE", None, [Edit(4, "I-b", "O"), Edit(6, "B-d", "B-c")], 8, 8,
        settled=Settled([5, 6], [Span("d", 6, 7)]),
    )
    both = merge(["O"] * 8, first, then)
    assert both.settled == Settled([0, 1, 2, 3, 5, 6, 7], [spans[0], Span("d", 6, 7)], intent=True)
    only = merge([], first, Update(8, length=8))
    assert only.settled == first.settled
    assert merge([], Update(8, length=8), then).settled == then.settled
    gone = Update(1, length=1, settled=Settled([0], []))
    assert merge([], gone, Update(1, edits=[Edit(0, "O", "B-a")], length=1)).settled is None


def test_an_intent_that_either_changed_has_changed() -> None:
    for before, after in ((True, False), (False, True), (True, True), (False, False)):
        first = Update(1, length=1, intent=Intent("PlayMusic", 0.5, before))
        then = Update(1, length=1, intent=Intent("GetWeather", 0.75, after, 0.5, 0.25))
        changed = before or after
        expected = Intent("GetWeather", 0.75, changed, 0.5, 0.25)
        assert merge([], first, then).intent == expected
    settled = Update(1, length=1, intent=Intent("PlayMusic", 0.5), settled=Settled([], [], True))
    changes = Update(1, length=1, intent=Intent("GetWeather", 0.5, True))
    assert merge([], settled, changes).settled is None
