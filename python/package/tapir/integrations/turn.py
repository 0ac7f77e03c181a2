"""A speaker's turn, which a recogniser may hear in several segments."""

from __future__ import annotations

import threading
from typing import Literal, TypeAlias

from .._tapir import Error
from .utterance import UNREADABLE, Labelled, Utterance

#: What ends an utterance: a final transcript, or the end of the speaker's turn.
Until: TypeAlias = Literal["final", "turn"]


class Turn:
    """Transcripts of one speaker in, labels of the whole utterance out.

    Many recognisers send several final transcripts while somebody has the turn, each with the text
    of its own segment alone. With `until="turn"` they are parts of one utterance, which `end` ends;
    with `until="final"` each of them ends one.

    >>> import tapir
    >>> from tapir.integrations import Turn, Utterance
    >>> turn = Turn(Utterance(tapir.Model.load("snips-small")), until="turn")
    >>> turn.hear("Play some jazz", final=True).spans
    [Span('genre', 2, 3, 'jazz')]
    >>> turn.hear("by Miles Davis", final=True).final
    False
    >>> turn.end().spans
    [Span('genre', 2, 3, 'jazz'), Span('artist', 4, 6, 'miles davis')]

    Threads may share one: they take turns.
    """

    def __init__(self, utterance: Utterance, until: Until = "final") -> None:
        if until not in ("final", "turn"):
            raise Error(f'until={until!r}: expected "final" or "turn"')
        self._utterance, self._until = utterance, until
        #: With turns: the words of the segments that are final, and those of the last hypothesis.
        self._said: list[str] = []
        self._heard: list[str] = []
        self._lock = threading.Lock()

    def hear(self, text: str, *, final: bool) -> Labelled:
        """Takes a transcript of the newest segment.

        One that cannot be read raises; the segment is left out if it is final.
        """
        with self._lock:
            if self._until == "final":
                return self._whole(text, final)
            words = [*self._said, *self._utterance.model.words(text)]
            labelled = self._utterance.hear(words)
            self._heard = words
            if final:
                self._said = words
            return labelled

    def end(self) -> Labelled | None:
        """Ends the turn: the labels of its utterance, if that has not ended before."""
        with self._lock:
            heard, self._said, self._heard = self._heard, [], []
            return self._utterance.hear(heard, final=True) if heard else None

    def reset(self) -> None:
        """Forgets what was said in this turn."""
        with self._lock:
            self._said, self._heard = [], []
            self._utterance.reset()

    def _whole(self, text: str, final: bool) -> Labelled:
        """Takes a transcript that is the whole utterance so far."""
        try:
            return self._utterance.hear(text, final=final)
        except UNREADABLE:
            if final:
                self._utterance.reset()
            raise
