"""A column of text, labelled, in Arrow: what `tapir.ray` and `tapir.spark` share.

What becomes of a row depends on its text alone, so that it does not matter which worker has it, in
what company, or how often it is computed.
"""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import pyarrow as pa

from ._tapir import Model, Tagged

WORDS = pa.list_(pa.string())
SPAN = pa.struct(
    [("label", pa.string()), ("start", pa.int32()), ("end", pa.int32()), ("text", pa.string())]
)
#: The columns that are added, with their types; `intent` as well, if the model knows intents.
COLUMNS = {"words": WORDS, "labels": WORDS, "spans": pa.list_(SPAN)}

#: The models of this process, by what they were made from.
_MODELS: dict[bytes, Model] = {}


class Labeller:
    """Labels a column. It is sent to workers, and loads its model once in each process."""

    def __init__(self, model: Model | str, column: str, prefix: str, options: dict[str, Any]):
        loaded = model if isinstance(model, Model) else Model.load(model)
        # What is wrong with the options is said here, and not by a worker far away.
        loaded.tag("", **options)
        self.column, self.prefix, self.options = column, prefix, options
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

    def __call__(self, table: Any) -> Any:
        """A table or a batch of rows with its labels. What has no text has no labels."""
        texts = table.column(self.column).to_pylist()
        # One thread: the engine has as many workers as it has cores.
        given = [text for text in texts if text is not None]
        tagged = iter(self.model.tag(given, threads=1, progress=False, **self.options))
        rows = [None if text is None else _row(next(tagged)) for text in texts]
        for name, kind in self.kinds.items():
            values = [None if row is None else row[name] for row in rows]
            table = table.append_column(self.prefix + name, pa.array(values, kind))
        return table


def _row(tagged: Tagged) -> dict[str, Any]:
    """What is kept of a sentence."""
    return tagged.to_dict()
