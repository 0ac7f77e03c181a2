"""The server of Wyoming, over a real port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tapir

pytest.importorskip("wyoming", reason="pip install wyoming")

from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.client import AsyncClient
from wyoming.error import Error as Refusal
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.intent import Intent, NotRecognized, Recognize

from tapir.integrations import Labelled, Utterance
from tapir.integrations.wyoming import serve


def with_client(
    model: tapir.Model,
    talk: Callable[[AsyncClient], Awaitable[None]],
    clients: int = 1,
    **options: Any,
) -> None:
    """Has clients talk to a server, all at once."""

    async def run() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            uri = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        server = asyncio.create_task(serve(uri, model, **options))
        for _ in range(100):
            with contextlib.suppress(OSError):
                async with contextlib.AsyncExitStack() as stack:
                    all_of_them = [
                        await stack.enter_async_context(AsyncClient.from_uri(uri))
                        for _ in range(clients)
                    ]
                    talks = asyncio.gather(*map(talk, all_of_them))
                    await asyncio.wait_for(talks, timeout=30)
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
        assert first.context == {"partial": True, "id": 7, "final": False, "committed": 0}
        for text in ("Play some jazz", "Play some jazz by"):
            intent = Intent.from_event(await ask(client, Recognize(text, partial)))
            assert [(one.name, one.value) for one in intent.entities] == [("genre", "jazz")]
        intent = Intent.from_event(await ask(client, Recognize("Play some jazz by Miles Davis.")))
        assert intent.name == "snips"
        assert [(one.name, one.value) for one in intent.entities] == [
            ("genre", "jazz"),
            ("artist", "miles davis"),
        ]
        assert intent.context == {"final": True, "committed": 6}
        again = Intent.from_event(await ask(client, Recognize("play some jazz")))
        assert [one.value for one in again.entities] == ["jazz"], "a new utterance"

    with_client(snips, talk)


def test_what_is_not_for_the_model_is_not_recognized(outside: str) -> None:
    async def talk(client: AsyncClient) -> None:
        heard = await ask(client, Recognize("play some jazz"))
        assert Intent.from_event(heard).name == "PlayMusic"
        refused = NotRecognized.from_event(await ask(client, Recognize(outside)))
        assert refused.context == {"final": True, "committed": len(outside.split())}

    with_client(tapir.Model.load("snips"), talk)


def test_transcripts_that_stream(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        await client.write_event(TranscriptStart().event())
        assert NotRecognized.is_type((await ask(client, TranscriptChunk("play some "))).type)
        partial = Intent.from_event(await ask(client, TranscriptChunk("jazz")))
        assert partial.context == {"final": False, "committed": 0}
        final = Intent.from_event(await ask(client, Transcript("play some jazz")))
        assert final.context == {"final": True, "committed": 3}

    with_client(snips, talk)


def test_a_stream_that_only_stops(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        for _ in range(2):
            await client.write_event(TranscriptStart().event())
            await ask(client, TranscriptChunk("play some "))
            await ask(client, TranscriptChunk("jazz"))
            final = Intent.from_event(await ask(client, TranscriptStop()))
            assert final.context == {"final": True, "committed": 3}
            assert [one.value for one in final.entities] == ["jazz"]
        # After a transcript there is nothing left to end.
        await client.write_event(TranscriptStart().event())
        await ask(client, TranscriptChunk("play "))
        await ask(client, Transcript("play some jazz"))
        await client.write_event(TranscriptStop().event())
        assert Info.is_type((await ask(client, Describe())).type)

    with_client(snips, talk)


def test_what_has_settled_is_said(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        first = await ask(client, Recognize("play some jazz", {"partial": True}))
        said = (Intent.from_event(first).context or {})["settled"]
        last = Intent.from_event(await ask(client, Recognize("play some jazz please")))
        assert said and sorted(said + (last.context or {})["settled"]) == [0, 1, 2, 3]

    with_client(snips, talk, settled=0.95)


def test_the_program_takes_options() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    program = [sys.executable, "-m", "tapir.integrations.wyoming", "--model", "snips-small"]
    # Not in the folder of the package, whose source would be imported instead of what is installed.
    folder = Path(__file__).parent
    wrong = subprocess.run(
        [*program, "--threshold", "2"], capture_output=True, text=True, cwd=folder, timeout=60
    )
    assert wrong.returncode == 2 and "threshold" in wrong.stderr
    options = ["--language", "de", "--language", "en", "--threshold", "1", "--uri", uri]
    server = subprocess.Popen([*program, *options], cwd=folder)

    async def talk() -> list[str]:
        for _ in range(200):
            with contextlib.suppress(OSError):
                async with AsyncClient.from_uri(uri) as client:
                    about = Info.from_event(await ask(client, Describe()))
                    return list(about.intent[0].models[0].languages)
            await asyncio.sleep(0.1)
        pytest.fail("the server did not start")

    try:
        assert asyncio.run(talk()) == ["de", "en"]
    finally:
        server.kill()
        server.wait()


async def ask_with(client: AsyncClient, kind: str, data: Any) -> Event:
    """Asks with a request as it stands, which the package itself would not send."""
    writer = client._writer
    assert writer is not None
    writer.write(json.dumps({"type": kind, "data": data}).encode() + b"\n")
    answer = await client.read_event()
    assert answer is not None, "the connection has ended"
    return answer


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("recognize", {}, "`text` must be a string, not null"),
        ("recognize", {"text": None}, "`text` must be a string, not null"),
        ("recognize", {"text": ["play"]}, "`text` must be a string"),
        ("recognize", [1], "`text` must be a string, not null"),
        ("recognize", {"text": "play", "context": "partial"}, "`context` must be an object"),
        ("recognize", {"text": "play", "context": {"id": "\ud800"}}, "surrogates not allowed"),
        ("recognize", {"text": "play \ud800"}, "surrogates not allowed"),
        ("recognize", {"text": "x" * 5000}, "longer than the limit"),
        ("recognize", {"text": "play " * 10_001}, "10001 words are more than the 10000"),
        ("transcript-chunk", {}, "`text` must be a string, not null"),
        ("transcript-chunk", {"text": "x" * 5000}, "longer than the limit"),
        ("transcript", {"text": None}, "`text` must be a string, not null"),
        ("transcript", {"text": "play", "context": 7}, "`context` must be an object, not 7"),
    ],
)
def test_what_cannot_be_answered_is_said_and_the_connection_goes_on(
    snips: tapir.Model, kind: str, data: Any, reason: str
) -> None:
    async def talk(client: AsyncClient) -> None:
        refusal = await ask_with(client, kind, data)
        assert Refusal.is_type(refusal.type) and reason in Refusal.from_event(refusal).text
        intent = Intent.from_event(await ask(client, Recognize("play some jazz")))
        assert [one.value for one in intent.entities] == ["jazz"]

    with_client(snips, talk)


def test_texts_without_end_are_refused(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        await client.write_event(TranscriptStart().event())
        for _ in range(2):
            await client.write_event(TranscriptChunk("." * 600_000).event())
        assert NotRecognized.is_type((await client.read_event() or Event("")).type)
        refusal = Refusal.from_event(await client.read_event() or Event(""))
        assert "1200000 letters are more than the 1000000" in refusal.text
        final = Intent.from_event(await ask(client, Transcript("play some jazz")))
        assert [one.value for one in final.entities] == ["jazz"]

    with_client(snips, talk)


def test_a_chunk_that_is_refused_is_left_out(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        await client.write_event(TranscriptStart().event())
        await ask(client, TranscriptChunk("play some "))
        assert Refusal.is_type((await ask(client, TranscriptChunk("x" * 5000))).type)
        partial = Intent.from_event(await ask(client, TranscriptChunk("jazz")))
        assert [one.value for one in partial.entities] == ["jazz"]

    with_client(snips, talk)


def test_contexts(snips: tapir.Model) -> None:
    async def talk(client: AsyncClient) -> None:
        for partial in ("false", 1, None, False):
            context = {"partial": partial}
            final = Intent.from_event(await ask(client, Recognize("play some jazz", context)))
            assert final.context == {"partial": partial, "final": True, "committed": 3}
        heard = Intent.from_event(await ask(client, Transcript("play some jazz", {"id": 7})))
        assert heard.context == {"id": 7, "final": True, "committed": 3}

    with_client(snips, talk)


def test_a_long_text_holds_nobody_up(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one client's text is read, another is answered."""
    started, answered, waited = threading.Event(), threading.Event(), list[bool]()
    hear = Utterance.hear

    def slow(self: Utterance, text: str | list[str], *, final: bool = False) -> Labelled:
        started.set()
        waited.append(answered.wait(timeout=10))
        return hear(self, text, final=final)

    monkeypatch.setattr(Utterance, "hear", slow)
    turns = iter(("long", "other"))

    async def talk(client: AsyncClient) -> None:
        if next(turns) == "long":
            intent = Intent.from_event(await ask(client, Recognize("play some jazz")))
            assert [one.value for one in intent.entities] == ["jazz"]
        else:
            assert await asyncio.to_thread(started.wait, 10)
            assert Info.is_type((await ask(client, Describe())).type)
            answered.set()

    with_client(snips, talk, clients=2)
    assert waited == [True]


def test_clients_do_not_mix(snips: tapir.Model) -> None:
    texts = iter(("play some jazz", "book a table in boston"))

    async def talk(client: AsyncClient) -> None:
        words = next(texts).split()
        for count in range(1, len(words)):
            await ask(client, Recognize(" ".join(words[:count]), {"partial": True}))
        intent = Intent.from_event(await ask(client, Recognize(" ".join(words))))
        spans = snips.tag([words])[0].spans
        assert [one.value for one in intent.entities] == [span.text for span in spans]

    with_client(snips, talk, clients=2)
