"""The processor of Pipecat, in a real pipeline."""

from __future__ import annotations

import asyncio

import pytest

import tapir

pytest.importorskip("pipecat", reason="pip install pipecat-ai")

from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterimTranscriptionFrame,
    TextFrame,
    TranscriptionFrame,
)
from pipecat.tests.utils import run_test

from tapir.integrations.pipecat import LabelsFrame, TapirProcessor

pytestmark = pytest.mark.heavy


def run(processor: TapirProcessor, frames: list[Frame]) -> list[Frame]:
    down, _ = asyncio.run(run_test(processor, frames_to_send=frames))
    return list(down)


def test_labels_follow_transcriptions(snips: tapir.Model) -> None:
    frames = [
        InterimTranscriptionFrame("Add step", "ann", "0"),
        InterimTranscriptionFrame("Add step to me", "ann", "1"),
        TextFrame("nobody said this"),
        TranscriptionFrame("Add step to me to the playlist.", "ann", "2"),
        InterimTranscriptionFrame("play", "ann", "3"),
    ]
    down = run(TapirProcessor(snips), frames)
    kinds = [type(frame).__name__ for frame in down]
    assert kinds == [
        "InterimTranscriptionFrame", "LabelsFrame", "InterimTranscriptionFrame", "LabelsFrame",
        "TextFrame", "TranscriptionFrame", "LabelsFrame", "InterimTranscriptionFrame",
        "LabelsFrame",
    ]
    labels = [frame for frame in down if isinstance(frame, LabelsFrame)]
    assert [frame.final for frame in labels] == [False, False, True, False]
    assert [span.text for span in labels[1].spans] == ["step to me"]
    assert labels[2].labelled.labels == snips.tag("add step to me to the playlist").labels
    assert labels[2].committed == 7 and labels[0].committed == 0
    assert labels[3].labelled.words == ["play"], "a new utterance"


def test_what_has_settled_is_said() -> None:
    frames = [
        InterimTranscriptionFrame("play some jazz by miles davis please", "ann", "0"),
        TranscriptionFrame("play some jazz by miles davis please", "ann", "1"),
    ]
    down = run(TapirProcessor("snips", settled=0.95), frames)
    first, last = [frame for frame in down if isinstance(frame, LabelsFrame)]
    assert first.settled is not None and last.settled is not None
    assert 0 < len(first.settled.words) < 7, "words of an utterance that goes on"
    assert sorted(first.settled.words + last.settled.words) == list(range(7))
    assert last.intent is not None and last.intent.label == "PlayMusic"
    assert (first.committed, last.committed) == (0, 7)
    [quiet, _] = [
        frame for frame in run(TapirProcessor("snips"), frames) if isinstance(frame, LabelsFrame)
    ]
    assert quiet.settled is None, "only who asks is told"


def test_users_do_not_mix(snips: tapir.Model) -> None:
    frames = [
        InterimTranscriptionFrame("play some", "ann", "0"),
        InterimTranscriptionFrame("book a table", "ben", "1"),
        TranscriptionFrame("play some jazz", "ann", "2"),
        TranscriptionFrame("book a table in boston", "ben", "3"),
    ]
    processor = TapirProcessor(snips, threshold=0.1)
    labels = [frame for frame in run(processor, frames) if isinstance(frame, LabelsFrame)]
    assert [frame.user_id for frame in labels] == ["ann", "ben", "ann", "ben"]
    assert labels[2].labelled.labels == snips.tag("play some jazz").labels
    assert labels[3].labelled.labels == snips.tag("book a table in boston").labels


def test_what_cannot_be_labelled_passes(snips: tapir.Model) -> None:
    frames = [
        InterimTranscriptionFrame("play sum", "ann", "0"),
        InterimTranscriptionFrame("play " + "x" * 5000, "ann", "1"),
        InterimTranscriptionFrame("play some jazz", "ann", "2"),
    ]
    down, up = asyncio.run(run_test(TapirProcessor(snips), frames_to_send=frames))
    labels = [frame for frame in down if isinstance(frame, LabelsFrame)]
    assert len(down) == 5 and [frame.labelled.words for frame in labels] == [
        ["play", "sum"], ["play", "some", "jazz"],
    ]
    assert [edit.position for edit in labels[1].labelled.update.edits] == [1, 2]
    [fault] = [frame for frame in up if isinstance(frame, ErrorFrame)]
    assert "longer than the limit" in fault.error
