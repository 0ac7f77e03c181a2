"""Training from Python, where the package was built with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from . import _tapir
from .corpora import Sentence, sentences

#: How to get what most wheels lack.
MISSING = (
    "this build of tapir cannot train, since training takes minutes to build; from a checkout: "
    "pip install ./python --config-settings build-args='--features train'"
)


def train(
    preset: str,
    out: str | PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    data: str | PathLike[str] | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    show: Callable[[str], object] | None = print,
) -> dict[str, Any]:
    """Trains a model into the folder `out`: from there `Model.load(out)` takes it.

    `preset` ships ("small/snips") or is the path of a file; `settings` change values of it, such as
    `{"task": "shop.toml", "training.reviser.batch": 64}` (docs/training.md). `write_task` makes a
    task of sentences in Python. Stages that were done are skipped, and Ctrl-C stops: the next call
    goes on from the last checkpoint. `show` gets a line for every epoch.

    What was made is given as `tapir train --results` has it: `model`, `reports`, `choice`, `valid`
    and `test`.
    """
    compiled = getattr(_tapir, "train", None)
    if compiled is None:
        raise ImportError(MISSING)
    changes = dict(settings or {})
    if seed is not None:
        changes["seed"] = seed
    given = [f"{key}={_toml(value)}" for key, value in changes.items()]
    run: dict[str, Any] = json.loads(compiled(preset, out, given, data, epochs, show))
    return run


def _toml(value: Any) -> str:
    """A value as presets have it. A text needs no quotes, but in a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        items = (
            json.dumps(item, ensure_ascii=False) if isinstance(item, str) else _toml(item)
            for item in value
        )
        return f"[{', '.join(items)}]"
    return str(value)


def write_task(
    folder: str | PathLike[str],
    train: Any,
    test: Any,
    *,
    valid: Any = None,
    scheme: str = "iob",
    words: str | None = None,
    labels: str | None = None,
    intent: str | None = None,
    sentence: str | None = None,
) -> Path:
    """Writes sentences as a task for `train` and for the command line; gives the task's file.

    The splits are what `tapir.sentences` takes; intents are kept. Without `valid`, a tenth of
    `train` is set apart. Nothing is written if a sentence is at fault.

    >>> import tapir, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     some = [(["play", "jazz"], ["O", "B-genre"])] * 10
    ...     task = tapir.write_task(folder, some, some[:2])
    ...     tapir.load_corpus(str(task), "test")[0]
    (['play', 'jazz'], ['O', 'B-genre'])
    """
    if scheme not in ("iob", "plain"):
        raise _tapir.Error(f'scheme {scheme!r}: expected "iob" or "plain"')
    files: dict[str, bytes] = {}
    for split, corpus in (("train", train), ("valid", valid), ("test", test)):
        if corpus is not None:
            found = sentences(corpus, words=words, labels=labels, intent=intent, sentence=sentence)
            rows = [_row(f"{split}, sentence {i}", one) for i, one in enumerate(found)]
            files[split] = "".join(rows).encode()
    place = Path(fspath(folder))
    place.mkdir(parents=True, exist_ok=True)
    score = "f1" if scheme == "iob" else "accuracy"
    lines = [f'name = "{_name(place)}"', 'data = "."', f'scheme = "{scheme}"', f'score = "{score}"']
    for split, text in files.items():
        (place / f"{split}.jsonl").write_bytes(text)
        lines.append(f'{split} = "{split}.jsonl"')
    if valid is None:
        lines += ["[split]", "valid = 0.1", "seed = 1"]
    task = place / "task.toml"
    task.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return task


def _name(place: Path) -> str:
    """A name of letters and digits, after the folder."""
    letters = (letter if letter.isalnum() else "-" for letter in place.resolve().name)
    return "".join(letters).strip("-") or "task"


def _row(place: str, sentence: Sentence) -> str:
    """A line of JSON."""
    words, labels = sentence
    if not words:
        raise _tapir.Error(f"{place}: it has no word; leave it out")
    for text in (*words, *labels):
        if not text or any(letter.isspace() for letter in text):
            raise _tapir.Error(
                f"{place}: {text!r} is empty or has a space; a model has no such word or label"
            )
    row: dict[str, Any] = {"tokens": words, "labels": labels}
    if sentence.intent is not None:
        if len(sentence.intent.splitlines()) != 1:
            raise _tapir.Error(f"{place}: the intent {sentence.intent!r} is empty or has two lines")
        row["intent"] = sentence.intent
    return json.dumps(row, ensure_ascii=False) + "\n"
