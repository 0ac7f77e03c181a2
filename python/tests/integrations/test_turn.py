"""Several final transcripts as one utterance."""

from __future__ import annotations

import doctest

import pytest

import tapir
from tapir.integrations import Turn, Utterance, turn


def test_the_example_runs() -> None:
    failed, tried = doctest.testmod(turn)
    assert tried > 3 and failed == 0


def test_segments_of_a_turn_are_one_utterance(snips: tapir.Model) -> None:
    speaker, labels = Turn(Utterance(snips), until="turn"), list[str]()
    transcripts = [
        ("add step", False), ("add step to me", True), ("to", False), ("to the playlist", True)
    ]
    for text, final in transcripts:
        heard = speaker.hear(text, final=final)
        heard.update.apply(labels)
        assert labels == heard.labels and not heard.final
    end = speaker.end()
    assert end is not None and end.final
    assert end.labels == snips.tag("add step to me to the playlist").labels
    assert speaker.end() is None, "a turn ends once"
    assert speaker.hear("play", final=False).words == ["play"], "a new turn"
    last = speaker.end()
    assert last is not None and last.words == ["play"], "its last transcript never became final"


def test_without_turns_a_final_transcript_ends_the_utterance(snips: tapir.Model) -> None:
    speaker = Turn(Utterance(snips))
    assert speaker.hear("play some jazz", final=True).final
    assert speaker.hear("by miles", final=False).words == ["by", "miles"]
    assert speaker.end() is None
    assert speaker.hear("by miles davis", final=True).words == ["by", "miles", "davis"]


@pytest.mark.parametrize("bad", ["x" * 5000, "\ud800"])
def test_a_segment_that_nobody_can_read_is_left_out(snips: tapir.Model, bad: str) -> None:
    speaker = Turn(Utterance(snips), until="turn")
    speaker.hear("play some", final=True)
    for final in (False, True):
        with pytest.raises((tapir.Error, UnicodeEncodeError)):
            speaker.hear(bad, final=final)
    assert speaker.hear("jazz", final=True).words == ["play", "some", "jazz"]
    speaker.reset()
    assert speaker.end() is None


def test_what_ends_an_utterance_is_one_of_two(snips: tapir.Model) -> None:
    with pytest.raises(tapir.Error, match='"final" or "turn"'):
        Turn(Utterance(snips), until="pause")  # type: ignore[arg-type]
