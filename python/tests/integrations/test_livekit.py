"""The agent of LiveKit, with the real package."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any
from unittest import mock

import pytest

import tapir

pytest.importorskip("livekit.agents", reason="pip install livekit-agents")

from livekit.agents import Agent, stt

from tapir.integrations import Labelled, Utterance
from tapir.integrations.livekit import TapirAgent, label_speech, label_text

pytestmark = pytest.mark.heavy

EVENTS: list[Any] = [
    stt.SpeechEvent(stt.SpeechEventType.START_OF_SPEECH),
    *(
        stt.SpeechEvent(kind, alternatives=[stt.SpeechData(language="en", text=text)])
        for kind, text in [
            (stt.SpeechEventType.INTERIM_TRANSCRIPT, "Play sum"),
            (stt.SpeechEventType.PREFLIGHT_TRANSCRIPT, "Play some jazz"),
            (stt.SpeechEventType.FINAL_TRANSCRIPT, "Play some jazz."),
        ]
    ),
    stt.SpeechEvent(stt.SpeechEventType.END_OF_SPEECH),
]


async def stream(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def check(heard: list[Labelled]) -> None:
    assert [one.words[-1] for one in heard] == ["sum", "jazz", "jazz"]
    assert [one.final for one in heard] == [False, False, True]
    assert [span.text for span in heard[-1].spans] == ["jazz"]


def test_speech(snips: tapir.Model) -> None:
    heard: list[Labelled] = []

    async def run() -> list[Any]:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled)

        events = label_speech(stream(EVENTS), Utterance(snips), on_labels)
        return [event async for event in events]

    assert asyncio.run(run()) == EVENTS, "every event passes as it is"
    check(heard)


def test_an_agent(snips: tapir.Model) -> None:
    heard: list[Labelled] = []

    class Listening(TapirAgent):
        async def on_labels(self, labelled: Labelled) -> None:
            heard.append(labelled)

    async def run() -> list[Any]:
        agent = Listening(model=snips, instructions="listen", options={"threshold": 0.2})
        with mock.patch.object(Agent.default, "stt_node", lambda *_: stream(EVENTS)):
            return [event async for event in agent.stt_node(stream([]), mock.Mock())]

    assert asyncio.run(run()) == EVENTS
    check(heard)


def transcript(kind: Any, text: str) -> stt.SpeechEvent:
    return stt.SpeechEvent(kind, alternatives=[stt.SpeechData(language="en", text=text)])


def test_a_turn_of_several_transcripts_is_one_utterance(snips: tapir.Model) -> None:
    kinds, heard = stt.SpeechEventType, list[Labelled]()
    events: list[Any] = [
        transcript(kinds.FINAL_TRANSCRIPT, "Play some jazz"),
        transcript(kinds.INTERIM_TRANSCRIPT, "by Miles"),
        transcript(kinds.FINAL_TRANSCRIPT, "by Miles Davis."),
        # LiveKit passes over it.
        transcript(kinds.FINAL_TRANSCRIPT, ""),
        stt.SpeechEvent(kinds.END_OF_SPEECH),
        transcript(kinds.INTERIM_TRANSCRIPT, "play"),
    ]

    async def run() -> list[Any]:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled)

        passed = label_speech(stream(events), Utterance(snips), on_labels, until="turn")
        return [event async for event in passed]

    assert asyncio.run(run()) == events
    assert [one.final for one in heard] == [False, False, False, True, False]
    assert [span.text for span in heard[3].spans] == ["jazz", "miles davis"]
    assert heard[4].words == ["play"], "a new turn"


def test_a_final_transcript_without_a_text_ends_nothing(snips: tapir.Model) -> None:
    kinds, heard = stt.SpeechEventType, list[Labelled]()
    events: list[Any] = [
        transcript(kinds.INTERIM_TRANSCRIPT, "play some"),
        transcript(kinds.FINAL_TRANSCRIPT, ""),
        transcript(kinds.FINAL_TRANSCRIPT, "play some jazz"),
    ]

    async def run() -> None:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled)

        async for _ in label_speech(stream(events), Utterance(snips), on_labels):
            pass

    asyncio.run(run())
    assert [one.final for one in heard] == [False, True]
    assert heard[1].labels == snips.tag("play some jazz").labels


def test_a_revision_does_not_hold_up_the_agent(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear, ticks, ticked = Utterance.hear, [0], list[int]()

    def slow(self: Utterance, text: list[str], *, final: bool = False) -> Labelled:
        before = ticks[0]
        time.sleep(0.5)
        ticked.append(ticks[0] - before)
        return hear(self, text, final=final)

    monkeypatch.setattr(Utterance, "hear", slow)

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.01)
            ticks[0] += 1

    async def run() -> None:
        async def on_labels(labelled: Labelled) -> None:
            pass

        ticking = asyncio.create_task(tick())
        events = [transcript(stt.SpeechEventType.INTERIM_TRANSCRIPT, "play")]
        async for _ in label_speech(stream(events), Utterance(snips), on_labels):
            pass
        ticking.cancel()

    asyncio.run(run())
    assert len(ticked) == 1 and ticked[0] > 3


def test_a_stream_that_is_cancelled_leaves_no_words(snips: tapir.Model) -> None:
    """The next stream of the agent begins a new utterance."""
    kinds = stt.SpeechEventType
    speaker, heard = Utterance(snips), list[Labelled]()

    async def run() -> None:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled)

        texts = ("add step", "add step to")
        events = [transcript(kinds.INTERIM_TRANSCRIPT, text) for text in texts]
        speech = label_speech(stream(events), speaker, on_labels)
        await anext(speech), await anext(speech)
        await speech.aclose()
        text = label_text(stream(["add step ", "to"]), speaker, on_labels)
        await anext(text), await anext(text)
        await text.aclose()
        async for _ in label_text(stream(["add"]), speaker, on_labels):
            pass

    asyncio.run(run())
    assert [one.words for one in heard] == [["add", "step"], ["add", "step"], ["add"]]
    for one in heard:
        assert all(edit.old is None for edit in one.update.edits)
        assert len(one.update.edits) == len(one.words), "nothing was there before"


def test_an_agent_labels_its_own_text(snips: tapir.Model) -> None:
    """With LiveKit's own node for comparison."""
    said: list[Labelled] = []

    class Talking(TapirAgent):
        async def on_reply_labels(self, labelled: Labelled) -> None:
            said.append(labelled)

    pieces = ["Play", " so", "me ", "ja", "zz"]

    async def run(agent: Agent) -> list[str]:
        return [piece async for piece in agent.transcription_node(stream(pieces), mock.Mock())]

    assert asyncio.run(run(TapirAgent(model=snips, instructions="talk"))) == pieces
    assert asyncio.run(run(Agent(instructions="talk"))) == pieces and said == []
    for _ in range(2):
        assert asyncio.run(run(Talking(model=snips, instructions="talk"))) == pieces
    assert [one.final for one in said] == [False, False, True] * 2
    assert [span.text for span in said[-1].spans] == ["jazz"]


def test_text_that_an_agent_writes(snips: tapir.Model) -> None:
    heard: list[list[str]] = []

    async def run() -> str:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled.words)

        pieces = stream(["Play", " so", "me ", "ja", "zz"])
        return "".join([piece async for piece in label_text(pieces, Utterance(snips), on_labels)])

    assert asyncio.run(run()) == "Play some jazz"
    assert heard == [["play"], ["play", "some"], ["play", "some", "jazz"]]


def test_what_cannot_be_labelled_passes(
    snips: tapir.Model, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception would stop the pump of LiveKit, and nothing would be heard any more."""
    kinds = stt.SpeechEventType
    texts = [
        (kinds.INTERIM_TRANSCRIPT, "Play sum"),
        (kinds.INTERIM_TRANSCRIPT, "Play " + "x" * 5000),
        (kinds.INTERIM_TRANSCRIPT, "Play \ud800"),
        (kinds.FINAL_TRANSCRIPT, "Play " + "x" * 5000),
        (kinds.INTERIM_TRANSCRIPT, "Play some jazz"),
    ]
    events = [
        stt.SpeechEvent(kind, alternatives=[stt.SpeechData(language="en", text=text)])
        for kind, text in texts
    ]
    heard: list[Labelled] = []

    async def run() -> list[Any]:
        async def on_labels(labelled: Labelled) -> None:
            heard.append(labelled)
            raise RuntimeError("on_labels has a fault")

        passed = label_speech(stream(events), Utterance(snips), on_labels)
        return [event async for event in passed]

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(run()) == events
    assert [one.words for one in heard] == [["play", "sum"], ["play", "some", "jazz"]]
    first = heard[1].update.edits[0]
    assert (first.position, first.old) == (0, None), "the refused last one ended the utterance"
    said = [record.getMessage() for record in caplog.records if "tapir" in record.name]
    assert sum("has no labels" in one for one in said) == 3
    assert sum("on_labels failed" in one for one in said) == 2


def test_an_agent_speaks_on_when_labels_fail(snips: tapir.Model) -> None:
    async def run() -> str:
        async def on_labels(labelled: Labelled) -> None:
            raise RuntimeError("on_labels has a fault")

        pieces = stream(["Play ", "x" * 5000, " jazz"])
        return "".join([piece async for piece in label_text(pieces, Utterance(snips), on_labels)])

    assert asyncio.run(run()).endswith("x jazz")
