"""The agent of LiveKit, with the real package."""

from __future__ import annotations

import asyncio
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
