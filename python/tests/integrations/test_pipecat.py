"""The processor of Pipecat, in a real pipeline."""

from __future__ import annotations

import asyncio
import time

import pytest

import tapir

pytest.importorskip("pipecat", reason="pip install pipecat-ai")

from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterimTranscriptionFrame,
    TextFrame,
    TranscriptionFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.tests.utils import SleepFrame, run_test

from tapir.integrations import Labelled, Utterance
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


def test_a_turn_of_several_transcriptions_is_one_utterance(snips: tapir.Model) -> None:
    frames = [
        TranscriptionFrame("Play some jazz", "ann", "0"),
        InterimTranscriptionFrame("by Miles", "ann", "1"),
        TranscriptionFrame("by Miles Davis.", "ann", "2"),
        TranscriptionFrame("Book a table", "ben", "3"),
        # A system frame overtakes those that wait.
        SleepFrame(1.0),
        UserStoppedSpeakingFrame(),
        SleepFrame(1.0),
        TranscriptionFrame("play", "ann", "4"),
    ]
    labels = [
        frame for frame in run(TapirProcessor(snips, until="turn"), frames)
        if isinstance(frame, LabelsFrame)
    ]
    assert [(frame.user_id, frame.final) for frame in labels] == [
        ("ann", False), ("ann", False), ("ann", False), ("ben", False),
        ("ann", True), ("ben", True), ("ann", False),
    ]
    assert [span.text for span in labels[4].spans] == ["jazz", "miles davis"]
    assert labels[4].labelled.labels == snips.tag("play some jazz by miles davis").labels
    assert labels[5].labelled.words == ["book", "a", "table"]
    assert labels[6].labelled.words == ["play"], "a new turn"


def test_the_end_of_a_turn_waits_for_labels(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered to the last transcription, which has passed while its labels are made."""
    hear = Utterance.hear

    def slow(self: Utterance, text: list[str], *, final: bool = False) -> Labelled:
        time.sleep(0.5)
        return hear(self, text, final=final)

    monkeypatch.setattr(Utterance, "hear", slow)

    class Aggregator(FrameProcessor):
        """Ends the turn when it gets a final transcription, as Pipecat's own does."""

        async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
            await super().process_frame(frame, direction)
            if isinstance(frame, TranscriptionFrame):
                await self.push_frame(UserStoppedSpeakingFrame(), FrameDirection.UPSTREAM)
            await self.push_frame(frame, direction)

    processors = Pipeline([TapirProcessor(snips, until="turn"), Aggregator()])
    frames = [TranscriptionFrame("play some jazz", "ann", "0"), SleepFrame(2.0)]
    down, _ = asyncio.run(run_test(processors, frames_to_send=frames))
    labels = [frame for frame in down if isinstance(frame, LabelsFrame)]
    assert [frame.final for frame in labels] == [False, True]


def test_a_revision_does_not_hold_up_other_frames(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While labels are made the event loop goes on."""
    hear, ticked = Utterance.hear, list[int]()

    def slow(self: Utterance, text: list[str], *, final: bool = False) -> Labelled:
        before = ticks[0]
        time.sleep(0.5)
        ticked.append(ticks[0] - before)
        return hear(self, text, final=final)

    monkeypatch.setattr(Utterance, "hear", slow)
    ticks = [0]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            ticks[0] += 1

    async def main() -> None:
        ticking = asyncio.create_task(tick())
        frames = [InterimTranscriptionFrame("play some jazz", "ann", "0")]
        await run_test(TapirProcessor(snips), frames_to_send=frames)
        ticking.cancel()

    asyncio.run(main())
    assert len(ticked) == 1 and ticked[0] > 3


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
