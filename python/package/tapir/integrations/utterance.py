"""What all adapters share: the hypotheses of a recogniser in, their labels out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._given import GivenModel, load
from .._tapir import Error, Intent, Settled, Span, Update, spans
from ._merge import merge

#: Words that a recogniser may take back: more than a session's default, since whole sentences are
#: sometimes rewritten at their end.
UNDO = 256

#: What a model says of a text that it cannot read.
UNREADABLE = (Error, UnicodeEncodeError)


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
    def committed(self) -> int:
        """How many labels, from the start, will never change again."""
        return self.update.committed

    @property
    def settled(self) -> Settled | None:
        """What has settled since the last hypothesis, if the session was asked (`settled=0.95`)."""
        return self.update.settled


class Utterance:
    """One speaker's utterance at a time, as a recogniser gives it: whole hypotheses.

    >>> import tapir
    >>> from tapir.integrations import Utterance
    >>> utterance = Utterance(tapir.Model.load("snips-small"))
    >>> utterance.hear("Play sum").labels
    ['O', 'B-artist']
    >>> utterance.hear("Play some jazz.", final=True).spans
    [Span('genre', 2, 3, 'jazz')]

    After a final hypothesis the next one begins a new utterance. Threads may share it: they take
    turns.
    """

    def __init__(
        self, model: GivenModel = "snips", *, undo: int = UNDO, **options: Any
    ) -> None:
        """Takes a model, or the name or path of one, and the options of `Model.session`."""
        self.model = load(model)
        self.session = self.model.session(undo=undo, **options)
        # A long session forgets its first labels; who replays the updates has them all.
        self._labels: list[str] = []
        self._ended = False
        # Who awaits a thread may be cancelled, and the thread still runs when the next one starts.
        self._lock = threading.RLock()

    def hear(
        self,
        text: str | list[str],
        *,
        final: bool = False,
        stability: float | Sequence[float] = 1.0,
    ) -> Labelled:
        """Takes a whole hypothesis: a text, or the words themselves.

        `stability` is how likely the recogniser finds it that its words stay, of all alike or of
        each (see `Session.update`). A hypothesis that cannot be read, such as one with an endless
        word, raises and changes nothing.
        """
        words = self.model.words(text) if isinstance(text, str) else list(text)
        with self._lock:
            if self._ended:
                self.reset()
            update = self._read(words, stability)
            if final:
                update = merge(self._labels, update, self.session.finish().update)
                self._ended = True
            update.apply(self._labels)
            return Labelled(words, list(self._labels), self._spans(words), update, final)

    def reset(self) -> None:
        """Ends the utterance without a last hypothesis: the next one begins a new one."""
        with self._lock:
            self.session.reset()
            self._labels.clear()
            self._ended = False

    def _read(self, words: list[str], stability: float | Sequence[float]) -> Update:
        try:
            return self.session.update(words, stability=stability)
        except Error:
            # Words that no session takes are refused here, too, and nothing is lost.
            self.model.session(threshold=1).update(words, stability=stability)
        # They differ before what is committed: too late to undo, so they are read as a new one.
        self.reset()
        return self.session.update(words, stability=stability)

    def _spans(self, words: list[str]) -> list[Span]:
        """Of all labels: the session itself has forgotten the first ones of a long stream."""
        # A delayed model has not labelled the newest words.
        labelled = words[: len(self._labels)]
        if self.model.scheme == "iob":
            return spans(labelled, self._labels)
        pairs = zip(labelled, self._labels, strict=True)
        return [Span(label, i, i + 1, word) for i, (word, label) in enumerate(pairs)]
