"""A column of text, labelled, in Arrow: what `tapir.ray` and `tapir.spark` share.

What becomes of a row depends on its text alone, so that it does not matter which worker has it, in
what company, or how often it is computed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ._given import GivenModel, load
from ._tapir import Error, Model, Tagged

WORDS = pa.list_(pa.string())
SPAN = pa.struct(
    [("label", pa.string()), ("start", pa.int32()), ("end", pa.int32()), ("text", pa.string())]
)
#: The columns that are added, with their types; `intent` as well, if the model knows intents.
COLUMNS = {"words": WORDS, "labels": WORDS, "spans": pa.list_(SPAN)}

#: Options of `Model.tag` that the engine sees to: it has as many workers as it has cores, and shows
#: its own progress.
ENGINE = ("threads", "progress")

#: What becomes of a text that cannot be labelled: the job ends, or the row has no labels.
Errors: TypeAlias = Literal["raise", "null"]

#: What a model says of a row that it cannot read: a text too long, a number, a list with a gap.
UNREADABLE = (Error, TypeError)

#: The models of this process, by what they were made from.
_MODELS: dict[bytes, Model] = {}


class Labeller:
    """Labels a column. It is sent to workers, and loads its model once in each process."""

    def __init__(
        self,
        model: GivenModel,
        column: str,
        prefix: str,
        options: dict[str, Any],
        errors: Errors = "raise",
    ):
        loaded = load(model)
        # What is wrong with the options is said here, and not by a worker far away.
        for option in ENGINE:
            if option in options:
                raise Error(f"{option!r} is not for a column: leave it to the engine")
        if errors not in ("raise", "null"):
            raise Error(f'errors={errors!r}: expected "raise" or "null"')
        loaded.tag("", **options)
        self.column, self.prefix, self.options, self.errors = column, prefix, options, errors
        self.kinds = {**COLUMNS, "intent": pa.string()} if loaded.intents else COLUMNS
        self._data = pickle.dumps(loaded)
        self._key = hashlib.sha256(self._data).digest()

    @property
    def model(self) -> Model:
        """The model, loaded if it is not there."""
        model = _MODELS.get(self._key)
        if model is None:
            model = _MODELS[self._key] = pickle.loads(self._data)
        return model

    def columns(self) -> dict[str, Any]:
        """The names and types of what is added."""
        return {self.prefix + name: kind for name, kind in self.kinds.items()}

    def check(self, names: Sequence[str], *, ignore_case: bool = False) -> None:
        """Refuses a table that lacks the column, or has one of those that are added."""
        if self.column not in names:
            raise Error(f"there is no column {self.column!r}; there are {list(names)}")
        fold = str.lower if ignore_case else str
        there = {fold(name): name for name in names}
        for name in map(fold, self.columns()):
            if name in there:
                raise Error(
                    f"there is a column {there[name]!r} already; begin the names of the new ones "
                    'with something else: prefix="tapir_"'
                )

    def __call__(self, table: Any) -> Any:
        """A table or a batch of rows with its labels. What has no text has no labels."""
        self.check(table.schema.names)
        texts = table.column(self.column).to_pylist()
        tagged = iter(self._tag([text for text in texts if text is not None]))
        sentences = [None if text is None else next(tagged) for text in texts]
        rows = [None if sentence is None else sentence.to_dict() for sentence in sentences]
        for name, kind in self.kinds.items():
            values = [None if row is None else row[name] for row in rows]
            table = table.append_column(self.prefix + name, pa.array(values, kind))
        return table

    def _tag(self, texts: list[Any]) -> Sequence[Tagged | None]:
        try:
            return self._tag_all(texts)
        except UNREADABLE:
            # Each alone, so that no other loses its labels.
            return [self._tag_one(text) for text in texts]

    def _tag_one(self, text: Any) -> Tagged | None:
        try:
            return self._tag_all([text])[0]
        except UNREADABLE as error:
            if self.errors == "null":
                return None
            reason = str(error).removeprefix("item 0: ")
            begins = repr(text[:40] if isinstance(text, str) else text)[:60]
            raise Error(
                f"column {self.column!r}, the text that begins {begins}: {reason}; "
                'errors="null" gives such rows no labels'
            ) from None

    def _tag_all(self, texts: list[Any]) -> list[Tagged]:
        # One thread: the engine has as many workers as it has cores.
        tagged: list[Tagged] = self.model.tag(texts, threads=1, progress=False, **self.options)
        return tagged
