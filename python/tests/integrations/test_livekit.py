"""The agent of LiveKit, with the real package."""

from __future__ import annotations

import asyncio
import logging
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
