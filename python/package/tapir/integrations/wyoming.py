"""A Wyoming server, for Home Assistant: texts in, intents with entities out.

    python -m tapir.integrations.wyoming --uri tcp://127.0.0.1:10500

`recognize` is answered with an `intent`, whose entities are the labelled stretches, or with
`not-recognized` if there is none. A `recognize` whose context has `"partial": true` is a hypothesis
that may still change: the connection's session reads only what is new. `transcript-start`,
`transcript-chunk` and `transcript` do the same for recognisers that stream.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart
from wyoming.event import Event
from wyoming.info import Attribution, Describe, Info, IntentModel, IntentProgram
from wyoming.intent import Entity, Intent, NotRecognized, Recognize
from wyoming.server import AsyncEventHandler, AsyncServer

from .._tapir import Model, __version__
from .utterance import Labelled, Utterance

ABOUT = Attribution(name="tapir", url="https://aclanthology.org/2023.findings-acl.257/")


def info(model: Model, languages: list[str]) -> Info:
    """What the server offers."""
    about: dict[str, Any] = {"attribution": ABOUT, "installed": True, "version": __version__}
    described = IntentModel(
        name=model.task, description=f"{len(model.labels)} labels", languages=languages, **about
    )
    program = IntentProgram(
        name="tapir", description="Labels words while they arrive", models=[described], **about
    )
    return Info(intent=[program])


class TapirHandler(AsyncEventHandler):
    """One connection: an utterance at a time."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        model: Model,
        intent: str | None = None,
        languages: list[str] | None = None,
        **options: Any,
    ) -> None:
        """Takes a model, what its intent is called, and session options.

        Without a name the intent is the one that the model hears, or else the model's task.
        """
        super().__init__(reader, writer)
        self._info = info(model, languages or ["en"])
        self._intent, self._task = intent, model.task
        self._utterance = Utterance(model, **options)
        self._chunks = ""

    async def handle_event(self, event: Event) -> bool:
        """Answers a request; others are ignored, as the protocol wants."""
        if Describe.is_type(event.type):
            await self.write_event(self._info.event())
        elif Recognize.is_type(event.type):
            request = Recognize.from_event(event)
            partial = bool((request.context or {}).get("partial"))
            await self._answer(request.text, not partial, request.context)
        elif TranscriptStart.is_type(event.type):
            self._chunks = ""
        elif TranscriptChunk.is_type(event.type):
            self._chunks += TranscriptChunk.from_event(event).text
            await self._answer(self._chunks, False, None)
        elif Transcript.is_type(event.type):
            self._chunks = ""
            await self._answer(Transcript.from_event(event).text, True, None)
        return True

    async def _answer(self, text: str, final: bool, context: dict[str, Any] | None) -> None:
        labelled = self._utterance.hear(text, final=final)
        await self.write_event(self._event(labelled, context))

    def _event(self, labelled: Labelled, context: dict[str, Any] | None) -> Event:
        about = {**(context or {}), "final": labelled.final, "settled": labelled.settled}
        heard = labelled.intent.label if labelled.intent else None
        if not labelled.spans and not heard:
            return NotRecognized(context=about).event()
        entities = [Entity(name=span.label, value=span.text) for span in labelled.spans]
        name = self._intent or heard or self._task
        return Intent(name=name, entities=entities, context=about).event()


async def serve(
    uri: str, model: Model | str = "snips", *, intent: str | None = None, **options: Any
) -> None:
    """Serves a model until it is stopped."""
    loaded = model if isinstance(model, Model) else Model.load(model)

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> TapirHandler:
        return TapirHandler(reader, writer, model=loaded, intent=intent, **options)

    await AsyncServer.from_uri(uri).run(connect)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tapir.integrations.wyoming")
    parser.add_argument("--uri", default="tcp://127.0.0.1:10500", help="where to listen")
    parser.add_argument("--model", default="snips", help="a name that ships, or a directory")
    parser.add_argument(
        "--intent", help="what the intent is called [default: the one heard, or the task]"
    )
    chosen = parser.parse_args()
    try:
        asyncio.run(serve(chosen.uri, chosen.model, intent=chosen.intent))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
