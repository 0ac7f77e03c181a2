"""LiveKit agents: labels beside the transcription nodes of an agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from functools import partial
from typing import Any

from livekit import rtc
from livekit.agents import Agent, ModelSettings, stt

from .._given import GivenModel, load
from .turn import Turn, Until
from .utterance import UNREADABLE, Labelled, Utterance

logger = logging.getLogger(__name__)

#: Events that bring a hypothesis, and whether it is the last.
HYPOTHESES = {
    stt.SpeechEventType.INTERIM_TRANSCRIPT: False,
    stt.SpeechEventType.PREFLIGHT_TRANSCRIPT: False,
    stt.SpeechEventType.FINAL_TRANSCRIPT: True,
}

#: What is done with labels.
OnLabels = Callable[[Labelled], Awaitable[None]]
#: What labels a transcript: None if there is nothing to label.
Hearing = Callable[[], Labelled | None]


async def label_speech(
    events: AsyncIterable[stt.SpeechEvent | str],
    utterance: Utterance,
    on_labels: OnLabels,
    *,
    until: Until = "final",
) -> AsyncGenerator[stt.SpeechEvent | str, None]:
    """Passes a recogniser's events on; `on_labels` gets the labels of each hypothesis.

    A final transcript ends the utterance; with `until="turn"` it is a part of it, and END_OF_SPEECH
    ends it. A hypothesis that cannot be labelled, and an exception of `on_labels`, go to the log.
    """
    turn = Turn(utterance, until)
    try:
        async for event in events:
            yield event
            hear = _hearing(event, turn)
            if hear is not None:
                await _label(hear, on_labels)
    finally:
        # The words of a stream that was cancelled are not the next one's.
        turn.reset()


def _hearing(event: stt.SpeechEvent | str, turn: Turn) -> Hearing | None:
    """How an event is heard, if it says something."""
    if isinstance(event, str):
        return partial(turn.hear, event, final=True)
    if event.type == stt.SpeechEventType.END_OF_SPEECH:
        return turn.end
    if event.type not in HYPOTHESES or not event.alternatives:
        return None
    # Its confidence, that the text is right, is no probability that the text stays.
    text, final = event.alternatives[0].text, HYPOTHESES[event.type]
    # LiveKit passes over a final transcript without a text.
    return partial(turn.hear, text, final=final) if text or not final else None


async def label_text(
    text: AsyncIterable[str], utterance: Utterance, on_labels: OnLabels
) -> AsyncGenerator[str, None]:
    """Passes pieces of a text on, as a transcription node gets them, and labels the text so far.

    A word is labelled when a space follows it: its last piece may come later.
    """
    whole = ""
    try:
        async for piece in text:
            yield piece
            # How much of the text ends with a space, if this piece has one.
            end = max((i + 1 for i, letter in enumerate(piece) if letter.isspace()), default=0)
            end += len(whole) if end else 0
            whole += piece
            if end:
                await _label(partial(utterance.hear, whole[:end]), on_labels)
        if whole.strip():
            await _label(partial(utterance.hear, whole, final=True), on_labels)
    finally:
        utterance.reset()


async def _label(hear: Hearing, on_labels: OnLabels) -> None:
    """Labels a hypothesis for `on_labels`.

    What goes wrong is logged: as an exception it would end the agent's hearing.
    """
    try:
        # In a thread: a revision takes some milliseconds, and the agent goes on meanwhile.
        labelled = await asyncio.to_thread(hear)
    except UNREADABLE as error:
        logger.warning("a transcript has no labels: %s", error)
        return
    if labelled is None:
        return
    try:
        await on_labels(labelled)
    except Exception:
        logger.exception("on_labels failed; the agent goes on to hear its user")


class TapirAgent(Agent):
    """An agent that labels what its user says while it is said. Override `on_labels`.

    Who overrides `on_reply_labels`, too, gets the labels of what the agent itself says.
    """

    def __init__(
        self,
        *,
        model: GivenModel = "snips",
        until: Until = "final",
        options: dict[str, Any] | None = None,
        **agent: Any,
    ) -> None:
        """Takes a model, or the name or path of one, what ends an utterance (see `label_speech`),
        the options of `Model.session`, and those of `Agent`."""
        super().__init__(**agent)
        self._model, self._options, self._until = load(model), options or {}, until
        # What is wrong with the options is said here, and not at the first word.
        self._utterance()

    def _utterance(self) -> Utterance:
        """One for each stream: the next may begin before one that was cancelled has ended."""
        return Utterance(self._model, **self._options)

    async def on_labels(self, labelled: Labelled) -> None:
        """Gets the labels of every hypothesis, interim and final."""

    def stt_node(
        self, audio: AsyncIterable[rtc.AudioFrame], model_settings: ModelSettings
    ) -> AsyncIterable[stt.SpeechEvent | str]:
        """The agent's own recogniser, with labels beside it."""
        events = Agent.default.stt_node(self, audio, model_settings)
        return label_speech(events, self._utterance(), self.on_labels, until=self._until)

    async def on_reply_labels(self, labelled: Labelled) -> None:
        """Gets the labels of the agent's own text, while it is written."""

    def transcription_node(
        self, text: AsyncIterable[str], model_settings: ModelSettings
    ) -> AsyncIterable[str]:
        """The agent's own text, with labels beside it if somebody wants them."""
        if type(self).on_reply_labels is TapirAgent.on_reply_labels:
            return text
        return label_text(text, self._utterance(), self.on_reply_labels)
