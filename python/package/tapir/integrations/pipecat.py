"""A Pipecat processor: transcriptions in, frames with labels out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pipecat.frames.frames import (
    DataFrame,
    Frame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    UserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from .._given import GivenModel, load
from .._tapir import Intent, Settled, Span
from .turn import Turn, Until
from .utterance import Labelled, Utterance


@dataclass
class LabelsFrame(DataFrame):
    """The labels of a transcription, which came just before it."""

    #: Words, labels, spans, and what changed.
    labelled: Labelled
    #: Who spoke.
    user_id: str = ""

    @property
    def spans(self) -> list[Span]:
        """The labelled stretches, with their text."""
        return self.labelled.spans

    @property
    def intent(self) -> Intent | None:
        """What the utterance is about, if the model knows intents."""
        return self.labelled.intent

    @property
    def committed(self) -> int:
        """How many labels, from the start, will never change again."""
        return self.labelled.committed

    @property
    def settled(self) -> Settled | None:
        """What has settled since the last hypothesis, if the processor was told `settled=0.95`."""
        return self.labelled.settled

    @property
    def final(self) -> bool:
        """Has the utterance ended?"""
        return self.labelled.final


class TapirProcessor(FrameProcessor):
    """Labels interim and final transcriptions, of each user apart.

    All frames pass. Behind each transcription comes a `LabelsFrame`. A final transcription ends the
    utterance of its user; with `until="turn"` it is a part of it, and `UserStoppedSpeakingFrame`
    ends the utterances of all users. A transcription that cannot be labelled passes, too, and
    Pipecat makes what was wrong an `ErrorFrame`.
    """

    def __init__(
        self,
        model: GivenModel = "snips",
        *,
        until: Until = "final",
        name: str | None = None,
        **options: Any,
    ):
        """Takes a model, or the name or path of one, and the options of `Model.session`."""
        super().__init__(name=name)
        self._model = load(model)
        self._until, self._options = until, options
        self._turns: dict[str, Turn] = {}
        # The end of a turn is a system frame: it overtakes what waits, but not a transcription
        # that has passed and has no labels yet.
        self._labelling = asyncio.Lock()
        # What is wrong with the options is said here, and not at the first word.
        self._new_turn()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Passes a frame on, and its labels behind it."""
        await super().process_frame(frame, direction)
        if isinstance(frame, (InterimTranscriptionFrame, TranscriptionFrame)):
            async with self._labelling:
                await self.push_frame(frame, direction)
                labelled = await self._hear(frame)
                await self.push_frame(LabelsFrame(labelled, frame.user_id), direction)
            return
        await self.push_frame(frame, direction)
        if isinstance(frame, UserStoppedSpeakingFrame):
            async with self._labelling:
                await self._end()

    async def _hear(self, frame: InterimTranscriptionFrame | TranscriptionFrame) -> Labelled:
        final = isinstance(frame, TranscriptionFrame)
        turn = self._turns.get(frame.user_id)
        if turn is None:
            turn = self._turns[frame.user_id] = self._new_turn()
        if final and self._until == "final":
            # Users come and go; one who speaks again gets a new session.
            del self._turns[frame.user_id]
        # In a thread: a revision takes some milliseconds, and frames pass meanwhile.
        return await asyncio.to_thread(turn.hear, frame.text, final=final)

    async def _end(self) -> None:
        if self._until != "turn":
            return
        for user in list(self._turns):
            labelled = await asyncio.to_thread(self._turns.pop(user).end)
            if labelled is not None:
                await self.push_frame(LabelsFrame(labelled, user))

    def _new_turn(self) -> Turn:
        return Turn(Utterance(self._model, **self._options), self._until)
