"""What all adapters share: the hypotheses of a recogniser in, their labels out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._tapir import Error, Intent, Model, Span, Update

#: Words that a recogniser may take back: more than a session's default, since whole sentences are
#: sometimes rewritten at their end.
UNDO = 256


@dataclass(frozen=True)
class Labelled:
    """A hypothesis with its labels."""

    #: The words that the model read.
    words: list[str]
    #: The label of each word.
    labels: list[str]
    #: The labelled stretches, with their text.
    spans: list[Span]
    #: What changed since the last hypothesis.
    update: Update
    #: Has the utterance ended? Then nothing changes any more.
    final: bool

    @property
    def intent(self) -> Intent | None:
        """What the utterance is about, if the model knows intents."""
        return self.update.intent

    @property
    def settled(self) -> int:
        """How many labels, from the start, will never change again."""
        return self.update.committed


class Utterance:
    """One speaker's utterance at a time, as a recogniser gives it: whole hypotheses.

    >>> import tapir
    >>> from tapir.integrations import Utterance
    >>> utterance = Utterance(tapir.Model.load("snips-small"))
    >>> utterance.hear("Play sum").labels
    ['O', 'B-artist']
    >>> utterance.hear("Play some jazz.", final=True).spans
    [Span('genre', 2, 3, 'jazz')]

    After a final hypothesis the next one begins a new utterance.
    """

    def __init__(self, model: Model | str = "snips", *, undo: int = UNDO, **options: Any) -> None:
        """Takes a model, or the name of one, and the options of `Model.session`."""
        self.model = model if isinstance(model, Model) else Model.load(model)
        self.session = self.model.session(undo=undo, **options)
        # A long session forgets its first labels; who replays the updates has them all.
        self._labels: list[str] = []
        self._ended = False

    def hear(self, text: str | list[str], *, final: bool = False) -> Labelled:
        """Takes a whole hypothesis: a text, or the words themselves."""
        words = self.model.words(text) if isinstance(text, str) else text
        if self._ended:
            self._begin()
        try:
            update = self.session.update(words)
        except Error:
            # It differs before what is committed: too late to undo, so it is read as a new one.
            self._begin()
            update = self.session.update(words)
        if final:
            update.apply(self._labels)
            update = self.session.finish().update
            self._ended = True
        update.apply(self._labels)
        return Labelled(words, list(self._labels), self._spans(words), update, final)

    def _begin(self) -> None:
        self.session.reset()
        self._labels.clear()
        self._ended = False

    def _spans(self, words: list[str]) -> list[Span]:
        return [
            Span(span.label, span.start, span.end, " ".join(words[span.start : span.end]))
            for span in self.session.spans
        ]
