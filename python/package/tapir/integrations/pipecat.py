"""A Pipecat processor: transcriptions in, frames with labels out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipecat.frames.frames import DataFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from .._given import GivenModel, load
from .._tapir import Intent, Settled, Span
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
    utterance of its user. One that cannot be labelled passes, too, and Pipecat makes what was wrong
    an `ErrorFrame`.
    """

    def __init__(self, model: GivenModel = "snips", *, name: str | None = None, **options: Any):
        """Takes a model, or the name or path of one, and the options of `Model.session`."""
        super().__init__(name=name)
        self._model = load(model)
        self._options = options
        self._utterances: dict[str, Utterance] = {}

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Passes a frame on, and its labels behind it."""
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, (InterimTranscriptionFrame, TranscriptionFrame)):
            final = isinstance(frame, TranscriptionFrame)
            # A millisecond or less: a thread would take as long to be reached.
            labelled = self._hear(frame.user_id, frame.text, final)
            await self.push_frame(LabelsFrame(labelled, frame.user_id), direction)

    def _hear(self, user: str, text: str, final: bool) -> Labelled:
        utterance = self._utterances.get(user)
        if utterance is None:
            utterance = self._utterances[user] = Utterance(self._model, **self._options)
        if final:
            # Users come and go; one who speaks again gets a new session.
            del self._utterances[user]
        return utterance.hear(text, final=final)
