"""Modules of retico: words of a recogniser in; labelled words, or what they are about, out.

Both sides speak retico's incremental units: ADD, UPDATE, REVOKE and COMMIT come in and go out, and
every unit that goes out is grounded in one that came in.
"""

from __future__ import annotations

import logging
from typing import Any

import retico_core
from retico_core import UpdateMessage, UpdateType
from retico_core.dialogue import DialogueActIU
from retico_core.text import SpeechRecognitionIU, TextIU

from .._given import GivenModel
from .._tapir import Error
from .utterance import UNREADABLE, Labelled, Utterance

logger = logging.getLogger(__name__)


class LabelledIU(TextIU):
    """A word and its label. The text of the unit is the word."""

    @staticmethod
    def type() -> str:
        """The name of the unit."""
        return "Labelled IU"

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        #: The word's label, which UPDATE changes.
        self.label: str | None = None

    def to_zmq(self, update_type: UpdateType) -> dict[str, Any]:
        """The unit as retico sends it to another process, with its label."""
        return {**super().to_zmq(update_type), "label": self.label}

    def from_zmq(self, zmq_data: dict[str, Any]) -> None:
        """Takes what `to_zmq` has sent."""
        super().from_zmq(zmq_data)
        self.label = zmq_data.get("label")


class _Listener(retico_core.AbstractModule):
    """Follows the text units that come in; what goes out is `_answer`'s.

    When all words that came in are committed, the utterance has ended: it is revised a last time,
    what was said of it is committed, and the next word begins a new one. With `end_on_commit=False`
    an utterance ends when `end` is called.
    """

    @staticmethod
    def input_ius() -> list[type]:
        """Units with text."""
        return [SpeechRecognitionIU, TextIU]

    def __init__(
        self,
        model: GivenModel = "snips",
        *,
        end_on_commit: bool = True,
        sleep_interval: float = 0.005,
        queue_class: type = retico_core.IncrementalQueue,
        meta_data: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Takes a model, or the name or path of one, and the options of `Model.session`.

        `sleep_interval` is how long the module sleeps when nothing arrives: retico's own 0.2
        seconds would be most of the delay.
        """
        super().__init__(
            queue_class=queue_class, meta_data=meta_data or {}, sleep_interval=sleep_interval
        )
        self.current_input: list[Any] = []
        self.current_output: list[Any] = []
        self.end_on_commit = end_on_commit
        self._utterance = Utterance(model, **options)
        self._given = {
            "model": model,
            "end_on_commit": end_on_commit,
            "sleep_interval": sleep_interval,
            **options,
        }
        #: The units that a message has committed, by their id. Flags on the units themselves are
        #: set by the recogniser's own thread, before its message is read here.
        self._committed: set[Any] = set()
        #: Units whose text cannot be read, by their id and that text.
        self._unreadable: set[tuple[Any, str]] = set()

    def get_init_arguments(self) -> dict[str, Any]:
        """What makes such a module again: `retico_core.network.save` writes it."""
        return {**self._given, "meta_data": self.meta_data}

    def process_update(self, update_message: UpdateMessage) -> UpdateMessage | None:
        """Takes what the recogniser says, and says what changed."""
        # A REVOKE may leave nothing but committed units: the start of an utterance that goes on.
        commits = False
        for unit, kind in update_message:
            if kind == UpdateType.ADD:
                self.current_input.append(unit)
            elif kind == UpdateType.REVOKE:
                self.revoke(unit)
            elif kind == UpdateType.UPDATE:
                self.current_input = [unit if old == unit else old for old in self.current_input]
            elif kind == UpdateType.COMMIT:
                self.commit(unit)
                self._committed.add(unit.iuid)
                commits = True
        ended = self.end_on_commit and commits and self._all_committed()
        return self._answer(ended)

    def _all_committed(self) -> bool:
        return bool(self.current_input) and all(
            unit.iuid in self._committed for unit in self.current_input
        )

    def end(self) -> None:
        """Ends the utterance, whatever is committed, and sends its last labels."""
        # The module's own thread may be in the midst of an update.
        with self.mutex:
            self.append(self._answer(True))

    def _hear(self, ended: bool) -> tuple[list[tuple[Any, int, str]], Labelled]:
        """The words that came in, and their labels.

        Units that cannot be read are left out, and the log says so: an exception would end the
        module's thread.
        """
        try:
            return self._label(ended)
        except UNREADABLE:
            for unit in self.current_input:
                self._check(unit)
        return self._label(ended)

    def _label(self, ended: bool) -> tuple[list[tuple[Any, int, str]], Labelled]:
        """The words, each with its unit and which word of the unit it is, and their labels."""
        heard = [
            (unit, i, word)
            for unit in self.current_input
            if (unit.iuid, unit.text or "") not in self._unreadable
            for i, word in enumerate(self._utterance.model.words(unit.text or ""))
        ]
        words = [word for _, _, word in heard]
        stability = [self._stability(unit) for unit, _, _ in heard]
        return heard, self._utterance.hear(words, final=ended, stability=stability)

    def _stability(self, unit: Any) -> float:
        """How likely the recogniser finds it that the unit stays.

        Many recognisers of retico do not say it, and leave 0.
        """
        said = getattr(unit, "stability", None)
        stays = unit.iuid in self._committed or getattr(unit, "final", False)
        return said if said and 0 < said <= 1 and not stays else 1.0

    def _check(self, unit: Any) -> None:
        """Finds out whether a unit can be read."""
        text = unit.text or ""
        if (unit.iuid, text) in self._unreadable:
            return
        try:
            self._utterance.model.tag(text, threshold=1, final_pass=False)
        except UNREADABLE as error:
            logger.warning("%s leaves a unit out: %s", self.name(), error)
            self._unreadable.add((unit.iuid, text))

    def _forget(self) -> None:
        """After the end of an utterance."""
        self.current_input, self.current_output = [], []
        self._committed.clear()
        self._unreadable.clear()

    def _answer(self, ended: bool) -> UpdateMessage | None:
        raise NotImplementedError


class TapirModule(_Listener):
    """Labels the words of text units.

    A unit that is revoked, in the middle, too, takes its labelled units with it; a label that
    changes is an UPDATE of the unit that has it. When all words that came in are committed, the
    utterance has ended: it is revised a last time, all its labels are committed, and the next word
    begins a new one. With `end_on_commit=False` an utterance ends when `end` is called.

    With `settled=0.95`, an option of `Model.session`, a label is committed as soon as it will stay
    with this probability; else when it can change no more, which is seldom before the end.

    What is committed is neither updated nor revoked, even if the recogniser rewrites its words.
    """

    @staticmethod
    def name() -> str:
        """The name of the module."""
        return "tapir"

    @staticmethod
    def description() -> str:
        """What the module does."""
        return "Labels words while they arrive"

    @staticmethod
    def output_iu() -> type:
        """A unit for each word."""
        return LabelledIU

    def __init__(self, model: GivenModel = "snips", **options: Any) -> None:
        super().__init__(model, **options)
        #: For each word: the unit it came in, which word of that unit it is, and the unit out.
        self._words: list[tuple[Any, int, LabelledIU]] = []

    def _answer(self, ended: bool) -> UpdateMessage | None:
        message = UpdateMessage()
        heard, result = self._hear(ended)
        self._revoke_lost(heard, message)
        added = heard[len(self._words) :]
        for unit, i, word in added:
            labelled = self.create_iu(grounded_in=unit)
            labelled.payload = word
            self._words.append((unit, i, labelled))
            self.current_output.append(labelled)
        first_new = len(self._words) - len(added)
        for position, (_, _, labelled) in enumerate(self._words):
            if labelled.committed:
                continue
            label = result.labels[position] if position < len(result.labels) else None
            changed = labelled.label != label
            labelled.label = label
            if position >= first_new:
                message.add_iu(labelled, UpdateType.ADD)
            elif changed:
                message.add_iu(labelled, UpdateType.UPDATE)
        settled = set(result.settled.words if result.settled else ())
        for position, (_, _, labelled) in enumerate(self._words):
            stays = ended or position < result.committed or position in settled
            if stays and not labelled.committed:
                self.commit(labelled)
                message.add_iu(labelled, UpdateType.COMMIT)
        if ended:
            self._words.clear()
            self._forget()
        return message if len(message) else None

    def _revoke_lost(self, heard: list[tuple[Any, int, str]], message: UpdateMessage) -> None:
        """Revokes units whose words are gone, and from where the order of those left differs."""
        there = {(unit.iuid, i): word for unit, i, word in heard}
        kept: list[tuple[Any, int, LabelledIU]] = []
        lost: list[tuple[Any, int, LabelledIU]] = []
        for entry in self._words:
            unit, i, labelled = entry
            word = there.get((unit.iuid, i))
            # What is committed stays, even if its word was updated.
            same = word is not None if labelled.committed else word == labelled.text
            now = heard[len(kept)][0] if len(kept) < len(heard) else None
            if same and now is not None and (now.iuid, heard[len(kept)][1]) == (unit.iuid, i):
                # An UPDATE may come as a new object of the same id.
                labelled.grounded_in = now
                kept.append((now, i, labelled))
            else:
                lost.append(entry)
        # The newest first, as they would be taken off a list.
        for _, _, labelled in reversed(lost):
            if labelled.committed:
                continue
            self.revoke(labelled)
            labelled.revoked = True
            message.add_iu(labelled, UpdateType.REVOKE)
        self._words = kept


class DialogueActModule(_Listener):
    """Says what an utterance is about, for models that know intents.

    One `DialogueActIU` for each utterance: its act is the intent, its confidence the intent's
    probability, its concepts the labelled stretches, by label (`{"genre": ["jazz"]}`). It is ADDed
    with the first word, UPDATEd when act or concepts change, REVOKEd if all words are, and
    COMMITted when the utterance has ended. It is grounded in the unit of the newest word then; when
    that unit is taken back, in the one before it, by an UPDATE. While an utterance is not one that
    the model is for (`Intent.outside`), there is no act: one that is there is REVOKEd.
    """

    @staticmethod
    def name() -> str:
        """The name of the module."""
        return "tapir dialogue acts"

    @staticmethod
    def description() -> str:
        """What the module does."""
        return "Says what an utterance is about while its words arrive"

    @staticmethod
    def output_iu() -> type:
        """A unit for each utterance."""
        unit: type = DialogueActIU
        return unit

    def __init__(self, model: GivenModel = "snips", **options: Any) -> None:
        super().__init__(model, **options)
        if not self._utterance.model.intents:
            raise Error("the model knows no intents: train one, or use TapirModule")
        self._act: DialogueActIU | None = None

    def _answer(self, ended: bool) -> UpdateMessage | None:
        message = UpdateMessage()
        heard, result = self._hear(ended)
        if result.intent is None or result.intent.outside or not heard:
            if self._act is not None:
                self.revoke(self._act)
                self._act.revoked = True
                message.add_iu(self._act, UpdateType.REVOKE)
                self._act = None
        else:
            concepts: dict[str, list[str]] = {}
            for span in result.spans:
                concepts.setdefault(span.label, []).append(span.text or "")
            kind = UpdateType.UPDATE
            if self._act is None:
                kind = UpdateType.ADD
                self._act = self.create_iu(grounded_in=heard[-1][0])
                self.current_output.append(self._act)
            changed = (self._act.act, self._act.concepts) != (result.intent.label, concepts)
            self._act.concepts = concepts
            self._act.set_act(result.intent.label, concepts, result.intent.probability)
            # Nothing may stay grounded in a unit that was taken back, or came as a new object.
            if changed or all(unit is not self._act.grounded_in for unit in self.current_input):
                self._act.grounded_in = heard[-1][0]
                message.add_iu(self._act, kind)
        if ended:
            if self._act is not None:
                self.commit(self._act)
                message.add_iu(self._act, UpdateType.COMMIT)
            self._act = None
            self._forget()
        return message if len(message) else None
