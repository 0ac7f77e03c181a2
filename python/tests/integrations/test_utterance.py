"""What the adapters share."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapir
from tapir.integrations import Labelled, Utterance, utterance

HYPOTHESES = st.lists(
    st.lists(st.sampled_from("add step to me some jazz by miles davis zzyzx".split()), max_size=7),
    min_size=1,
    max_size=5,
)


class Follower:
    """Replays updates, as somebody would who sees nothing else."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.settled: set[int] = set()

    def hear(self, heard: Labelled) -> None:
        update = heard.update
        positions = [edit.position for edit in update.edits]
        assert positions == sorted(set(positions)) and update.length == len(heard.labels)
        for edit in update.edits:
            known = edit.position < len(self.labels)
            assert edit.old == (self.labels[edit.position] if known else None) != edit.label
        update.apply(self.labels)
        assert self.labels == heard.labels
        self.settled = {word for word in self.settled if word < update.length} - set(positions)
        if update.settled:
            self.settled.update(update.settled.words)


def test_the_example_runs() -> None:
    failed, tried = doctest.testmod(utterance)
    assert tried > 3 and failed == 0


def test_hypotheses_that_change_their_minds(snips: tapir.Model) -> None:
    speaker = Utterance(snips)
    labels: list[str] = []
    for text in ("Add", "Add step", "Add step two", "Add step to me", "add step to me to"):
        heard = speaker.hear(text)
        heard.update.apply(labels)
        assert labels == heard.labels == snips_labels(snips, text)
        assert not heard.final and heard.committed == 0
    end = speaker.hear("Add step to me to the playlist.", final=True)
    assert end.labels == snips.tag("add step to me to the playlist").labels
    assert end.final and end.committed == len(end.words) == 7
    assert speaker.hear("play").words == ["play"], "a new utterance begins by itself"


def snips_labels(model: tapir.Model, text: str) -> list[str]:
    session = model.session()
    session.update(text)
    return session.labels


def test_a_hypothesis_that_comes_too_late_is_read_anew(snips: tapir.Model) -> None:
    speaker = Utterance(snips, undo=2, window=4, threshold=1)
    words = ["play", "some", "jazz"] * 20
    for count in range(1, 61):
        heard = speaker.hear(words[:count])
    assert heard.committed > 40 and len(heard.labels) == 60
    assert speaker.hear(["something", "else"]).words == ["something", "else"]
    assert len(speaker.session) == 2


@settings(max_examples=60, deadline=None)
@given(HYPOTHESES)
def test_all_updates_replay_the_last_one_too(hypotheses: list[list[str]]) -> None:
    model = tapir.Model.load("snips-small")
    speaker, follower = Utterance(model, settled=0.95), Follower()
    for words in hypotheses[:-1]:
        follower.hear(speaker.hear(words))
    last = hypotheses[-1]
    end = speaker.hear(last, final=True)
    follower.hear(end)
    assert end.labels == model.tag([last])[0].labels
    assert follower.settled == set(range(len(last))), "nothing changes any more"


def test_what_settles_before_the_end_and_at_it_is_said_together(snips: tapir.Model) -> None:
    session = snips.session(settled=0.95)
    first = session.update("play some jazz please").settled
    then = session.finish().update.settled
    assert first is not None and then is not None
    end = Utterance(snips, settled=0.95).hear("play some jazz please", final=True)
    assert end.settled == end.update.settled
    settled = end.settled
    assert settled is not None and settled.words == [0, 1, 2, 3] == first.words + then.words
    assert settled.spans == first.spans + then.spans != []


def test_what_the_recogniser_doubts_does_not_settle(snips: tapir.Model) -> None:
    speaker = Utterance(snips, settled=0.95)
    doubted = speaker.hear(["play", "some", "jazz"], stability=[1.0, 0.5, 1.0])
    assert doubted.settled is not None and doubted.settled.words == [0, 2]
    assert doubted.labels == snips.tag("play some jazz", final_pass=False).labels
    surer = speaker.hear("play some jazz", stability=0.99).settled
    assert surer is not None and surer.words == [1]
    with pytest.raises(tapir.Error, match="stabilit"):
        speaker.hear("play some jazz", stability=[1.0])


def test_an_intent_that_is_new_at_the_end_has_changed() -> None:
    speaker = Utterance("snips")
    for text in ("play some jazz", "book a table"):
        assert (intent := speaker.hear(text, final=True).intent) is not None
        assert intent.changed
    assert (intent := speaker.hear("play some jazz").intent) is not None and intent.changed
    assert (intent := speaker.hear("play some jazz", final=True).intent) is not None
    assert not intent.changed


def test_a_hypothesis_that_nobody_can_read_costs_nothing(snips: tapir.Model) -> None:
    speaker = Utterance(snips)
    before = speaker.hear("add step to me")
    for bad in (["add", "x" * 5000], ["add", ""]):
        for final in (False, True):
            with pytest.raises(tapir.Error, match="word"):
                speaker.hear(bad, final=final)
    with pytest.raises(UnicodeEncodeError):
        speaker.hear("add \ud800")
    after = speaker.hear("add step to me to")
    assert [edit.position for edit in after.update.edits if edit.old is None] == [4]
    assert after.labels[:2] == before.labels[:2] and len(speaker.session) == 5


def test_nor_does_one_that_comes_too_late_as_well(snips: tapir.Model) -> None:
    speaker = Utterance(snips, undo=2, window=4, threshold=1)
    words = ["play", "some", "jazz"] * 20
    labels = speaker.hear(words).labels
    with pytest.raises(tapir.Error, match="longer than the limit"):
        speaker.hear(["other", "x" * 5000])
    again = speaker.hear(words)
    assert again.labels == labels and again.update.edits == ()


def test_spans_of_a_long_stream_are_all_there(snips: tapir.Model) -> None:
    speaker = Utterance(snips, undo=2, window=4, threshold=1)
    words = ["play", "some", "jazz"] * 40
    for count in range(1, 121):
        heard = speaker.hear(words[:count])
    assert speaker.session.first > 0, "the session has forgotten some"
    assert heard.spans == tapir.spans(words, heard.labels)
    assert heard.spans[0].text == "jazz" and len(heard.spans) == 40


def test_spans_of_words_that_all_have_a_label(pos: tapir.Model) -> None:
    speaker = Utterance(pos, undo=2, window=4, threshold=1)
    heard = speaker.hear("The cat didn't sleep.", final=True)
    assert heard.spans == pos.tag("The cat didn't sleep.").spans
    words = ["the", "cat", "sleeps"] * 40
    for count in range(1, 121):
        heard = speaker.hear(words[:count])
    assert [span.text for span in heard.spans] == words[: len(heard.labels)]
    assert [span.label for span in heard.spans] == heard.labels


def test_an_utterance_is_dropped(snips: tapir.Model) -> None:
    speaker = Utterance(snips)
    speaker.hear("add step to me")
    speaker.reset()
    update = speaker.hear("add step").update
    assert [(edit.position, edit.old) for edit in update.edits] == [(0, None), (1, None)]


def test_a_model_is_given_by_its_path(snips: tapir.Model, tmp_path: Path) -> None:
    snips.save(tmp_path / "model")
    assert Utterance(tmp_path / "model").hear("play").labels == ["O"]
