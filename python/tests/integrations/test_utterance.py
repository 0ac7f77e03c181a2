"""What the adapters share."""

from __future__ import annotations

import doctest

import tapir
from tapir.integrations import Utterance, utterance


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
        assert not heard.final and heard.settled == 0
    end = speaker.hear("Add step to me to the playlist.", final=True)
    assert end.labels == snips.tag("add step to me to the playlist").labels
    assert end.final and end.settled == len(end.words) == 7
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
    assert heard.settled > 40 and len(heard.labels) == 60
    assert speaker.hear(["something", "else"]).words == ["something", "else"]
    assert len(speaker.session) == 2
