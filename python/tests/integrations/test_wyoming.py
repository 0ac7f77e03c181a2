"""The server of Wyoming, over a real port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import tapir

pytest.importorskip("wyoming", reason="pip install wyoming")

from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart
from wyoming.client import AsyncClient
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.intent import Intent, NotRecognized, Recognize

from tapir.integrations.wyoming import serve


def with_client(model: tapir.Model, talk: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            uri = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        server = asyncio.create_task(serve(uri, model))
        for _ in range(100):
            with contextlib.suppress(OSError):
                async with AsyncClient.from_uri(uri) as client:
                    await asyncio.wait_for(talk(client), timeout=30)
                    break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("the server did not start")
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server

    asyncio.run(run())


async def ask(client: AsyncClient, event: Any) -> Event:
    await client.write_event(event.event())
    answer = await client.read_event()
    assert answer is not None
    return answer


def test_it_says_what_it_is(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        about = Info.from_event(await ask(client, Describe()))
        assert about.intent[0].name == "tapir" and about.intent[0].models[0].name == "snips"

    with_client(snips, talk)


def test_partial_and_final_texts(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        partial = {"partial": True, "id": 7}
        first = NotRecognized.from_event(await ask(client, Recognize("Play some", partial)))
        assert first.context == {"partial": True, "id": 7, "final": False, "settled": 0}
        for text in ("Play some jazz", "Play some jazz by"):
            intent = Intent.from_event(await ask(client, Recognize(text, partial)))
            assert [(one.name, one.value) for one in intent.entities] == [("genre", "jazz")]
        intent = Intent.from_event(await ask(client, Recognize("Play some jazz by Miles Davis.")))
        assert intent.name == "snips"
        assert [(one.name, one.value) for one in intent.entities] == [
            ("genre", "jazz"),
            ("artist", "miles davis"),
        ]
        assert intent.context == {"final": True, "settled": 6}
        again = Intent.from_event(await ask(client, Recognize("play some jazz")))
        assert [one.value for one in again.entities] == ["jazz"], "a new utterance"

    with_client(snips, talk)


def test_transcripts_that_stream(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        await client.write_event(TranscriptStart().event())
        assert NotRecognized.is_type((await ask(client, TranscriptChunk("play some "))).type)
        partial = Intent.from_event(await ask(client, TranscriptChunk("jazz")))
        assert partial.context == {"final": False, "settled": 0}
        final = Intent.from_event(await ask(client, Transcript("play some jazz")))
        assert final.context == {"final": True, "settled": 3}

    with_client(snips, talk)
