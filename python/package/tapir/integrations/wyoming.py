"""A Wyoming server, for Home Assistant: texts in, intents with entities out.

    python -m tapir.integrations.wyoming --uri tcp://127.0.0.1:10500

`recognize` is answered with an `intent`, whose entities are the labelled stretches, or with
`not-recognized` if there is none or if the text is not one that the model is for. A `recognize`
whose context has `"partial": true` is a hypothesis that may still change: the connection's session
reads only what is new. `transcript-start`, `transcript-chunk` and `transcript` do the same for
recognisers that stream; where no `transcript` comes, `transcript-stop` ends the text. A request
that cannot be answered gets an `error`, and the connection goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from wyoming.asr import Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.error import Error as Refusal
from wyoming.event import Event
from wyoming.info import Attribution, Describe, Info, IntentModel, IntentProgram
from wyoming.intent import Entity, Intent, NotRecognized, Recognize
from wyoming.server import AsyncEventHandler, AsyncServer

from .._given import GivenModel, load
from .._tapir import Error, Model, __version__
from .utterance import UNREADABLE, Labelled, Utterance

ABOUT = Attribution(name="tapir", url="https://aclanthology.org/2023.findings-acl.257/")

#: Longer texts are refused, as by `Model.tag`: words.
LONGEST_SENTENCE = 10_000
#: And letters: while a text is split into words, nobody else is answered.
LONGEST_TEXT = 1_000_000


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
        try:
            answer = await self._answer(event)
            if answer is not None:
                await self.write_event(answer)
        except UNREADABLE as error:
            await self.write_event(Refusal(str(error)).event())
        return True

    async def _answer(self, event: Event) -> Event | None:
        if Describe.is_type(event.type):
            return self._info.event()
        if Recognize.is_type(event.type):
            context = _context(event)
            return await self._label(_text(event), context.get("partial") is not True, context)
        if TranscriptStart.is_type(event.type):
            self._chunks = ""
        elif TranscriptChunk.is_type(event.type):
            chunks = self._chunks + _text(event)
            answer = await self._label(chunks, False, {})
            self._chunks = chunks
            return answer
        elif Transcript.is_type(event.type):
            self._chunks = ""
            return await self._label(_text(event), True, _context(event))
        elif TranscriptStop.is_type(event.type) and self._chunks:
            # No transcript has come that would have said the same at once.
            chunks, self._chunks = self._chunks, ""
            return await self._label(chunks, True, {})
        return None

    async def _label(self, text: str, final: bool, context: dict[str, Any]) -> Event:
        try:
            # In a thread: a long text takes its time, and others are answered meanwhile.
            labelled = await asyncio.to_thread(self._hear, text, final)
        except UNREADABLE:
            if final:
                self._utterance.reset()
            raise
        return self._event(labelled, context)

    def _hear(self, text: str, final: bool) -> Labelled:
        if len(text) > LONGEST_TEXT:
            raise Error(
                f"{len(text)} letters are more than the {LONGEST_TEXT} of the longest text; "
                "split it"
            )
        words = self._utterance.model.words(text)
        if len(words) > LONGEST_SENTENCE:
            raise Error(
                f"{len(words)} words are more than the {LONGEST_SENTENCE} of the longest sentence; "
                "split it"
            )
        return self._utterance.hear(words, final=final)

    def _event(self, labelled: Labelled, context: dict[str, Any]) -> Event:
        about = {**context, "final": labelled.final, "committed": labelled.committed}
        if labelled.settled is not None:
            about["settled"] = labelled.settled.words
        heard = labelled.intent.label if labelled.intent else None
        outside = labelled.intent is not None and labelled.intent.outside
        if outside or not (labelled.spans or heard):
            return NotRecognized(context=about).event()
        entities = [Entity(name=span.label, value=span.text) for span in labelled.spans]
        name = self._intent or heard or self._task
        return Intent(name=name, entities=entities, context=about).event()


def _field(event: Event, name: str) -> Any:
    """What a request says, if it is well-formed enough to say something."""
    return event.data.get(name) if isinstance(event.data, dict) else None


def _text(event: Event) -> str:
    """The text of a request."""
    text = _field(event, "text")
    if not isinstance(text, str):
        raise Error(f"{event.type}: `text` must be a string, not {json.dumps(text)[:40]}")
    return text


def _context(event: Event) -> dict[str, Any]:
    """The context of a request, which it may leave out."""
    context = _field(event, "context")
    if context is None:
        return {}
    if not isinstance(context, dict):
        raise Error(f"{event.type}: `context` must be an object, not {json.dumps(context)[:40]}")
    return context


async def serve(
    uri: str,
    model: GivenModel = "snips",
    *,
    intent: str | None = None,
    languages: list[str] | None = None,
    **options: Any,
) -> None:
    """Serves a model until it is stopped. `options` are those of `Model.session`."""
    loaded = load(model)

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> TapirHandler:
        return TapirHandler(
            reader, writer, model=loaded, intent=intent, languages=languages, **options
        )

    # What is wrong with the options is said here, and not to the first who connects.
    loaded.session(**options)
    await AsyncServer.from_uri(uri).run(connect)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m tapir.integrations.wyoming")
    parser.add_argument("--uri", default="tcp://127.0.0.1:10500", help="where to listen")
    parser.add_argument("--model", default="snips", help="a name that ships, or a directory")
    parser.add_argument(
        "--intent", help="what the intent is called [default: the one heard, or the task]"
    )
    parser.add_argument(
        "--language", action="append", help="which one the model knows; may be repeated [en]"
    )
    parser.add_argument(
        "--threshold", type=float, help="revise from this policy value on, 0 to 1 [the model's]"
    )
    parser.add_argument(
        "--settled", type=float, help="say which words stay with this probability, such as 0.95"
    )
    chosen = parser.parse_args()
    options = {"threshold": chosen.threshold, "settled": chosen.settled}
    try:
        asyncio.run(
            serve(
                chosen.uri,
                chosen.model,
                intent=chosen.intent,
                languages=chosen.language,
                **options,
            )
        )
    except Error as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
