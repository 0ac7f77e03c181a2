"""LiveKit agents: labels beside the transcription nodes of an agent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Any

from livekit import rtc
from livekit.agents import Agent, ModelSettings, stt

from .._given import GivenModel
from .._tapir import Error
from .utterance import Labelled, Utterance

logger = logging.getLogger(__name__)

#: Events that bring a hypothesis, and whether it is the last.
HYPOTHESES = {
    stt.SpeechEventType.INTERIM_TRANSCRIPT: False,
    stt.SpeechEventType.PREFLIGHT_TRANSCRIPT: False,
    stt.SpeechEventType.FINAL_TRANSCRIPT: True,
}

#: What is done with labels.
OnLabels = Callable[[Labelled], Awaitable[None]]


async def label_speech(
    events: AsyncIterable[stt.SpeechEvent | str], utterance: Utterance, on_labels: OnLabels
) -> AsyncGenerator[stt.SpeechEvent | str, None]:
    """Passes a recogniser's events on; `on_labels` gets the labels of each hypothesis.

    A hypothesis that cannot be labelled, and an exception of `on_labels`, go to the log.
    """
    async for event in events:
        yield event
        if isinstance(event, str):
            await _label(event, True, utterance, on_labels)
        elif event.type in HYPOTHESES and event.alternatives:
            text = event.alternatives[0].text
            await _label(text, HYPOTHESES[event.type], utterance, on_labels)


async def label_text(
    text: AsyncIterable[str], utterance: Utterance, on_labels: OnLabels
) -> AsyncGenerator[str, None]:
    """Passes pieces of a text on, as a transcription node gets them, and labels the text so far.

    A word is labelled when a space follows it: its last piece may come later.
    """
    whole, labelled = "", 0
    async for piece in text:
        yield piece
        whole += piece
        end = max((i + 1 for i, letter in enumerate(whole) if letter.isspace()), default=0)
        if end > labelled:
            labelled = end
            await _label(whole[:end], False, utterance, on_labels)
    if whole.strip():
        await _label(whole, True, utterance, on_labels)


async def _label(text: str, final: bool, utterance: Utterance, on_labels: OnLabels) -> None:
    """Labels a hypothesis for `on_labels`.

    What goes wrong is logged: as an exception it would end the agent's hearing.
    """
    try:
        labelled = utterance.hear(text, final=final)
    except (Error, UnicodeEncodeError) as error:
        logger.warning("a transcript has no labels: %s", error)
        if final:
            utterance.reset()
        return
    try:
        await on_labels(labelled)
    except Exception:
        logger.exception("on_labels failed; the agent goes on to hear its user")


class TapirAgent(Agent):
    """An agent that labels what its user says while it is said. Override `on_labels`."""

    def __init__(
        self,
        *,
        model: GivenModel = "snips",
        options: dict[str, Any] | None = None,
        **agent: Any,
    ) -> None:
        """Takes a model, or the name or path of one, the options of `Model.session`, and those of
        `Agent`."""
        super().__init__(**agent)
        self._tapir = Utterance(model, **(options or {}))

    async def on_labels(self, labelled: Labelled) -> None:
        """Gets the labels of every hypothesis, interim and final."""

    async def stt_node(
        self, audio: AsyncIterable[rtc.AudioFrame], model_settings: ModelSettings
    ) -> AsyncGenerator[stt.SpeechEvent | str, None]:
        """The agent's own recogniser, with labels beside it."""
        events = Agent.default.stt_node(self, audio, model_settings)
        async for event in label_speech(events, self._tapir, self.on_labels):
            yield event
