"""Tasks from Python; training itself where the package was built with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tapir
from tapir import _tapir

SENTENCES = [
    ([*quantity.split(), "of", item], ["B-quantity", "I-quantity", "O", "B-item"])
    for item in ("apples", "pears", "milk", "bread", "rice", "eggs", "tea", "plums")
    for quantity in ("two pounds", "a litre", "three bags", "a box")
]


def test_a_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    task = tapir.write_task(tmp_path / "my shop", SENTENCES, SENTENCES[:5])
    assert tapir.load_corpus(str(task), "test") == SENTENCES[:5]
    train = tapir.load_corpus(str(task), "train")
    valid = tapir.load_corpus(str(task), "valid")
    assert len(train) + len(valid) == len(SENTENCES) and len(valid) == 4
    task = tapir.write_task(tmp_path / "given", SENTENCES, SENTENCES[:5], valid=SENTENCES[5:9])
    assert tapir.load_corpus(str(task), "valid") == SENTENCES[5:9]
    assert tapir.load_corpus(str(task), "train") == SENTENCES


@pytest.mark.parametrize("word", ["", "two pounds", "a\tb", "a\nb"])
def test_words_that_a_file_cannot_hold(tmp_path: Path, word: str) -> None:
    with pytest.raises(tapir.Error, match="sentence 0"):
        tapir.write_task(tmp_path, [([word], ["O"])], SENTENCES)


@pytest.mark.parametrize("word", ["-DOCSTART-", "\ufeff", "\ufeffplay", '"', "\\n", "{", "\0", "ü"])
def test_words_that_mean_something_to_readers_of_files(tmp_path: Path, word: str) -> None:
    some = [([word, "play"], ["O", "O"]), (["play", word], ["O", "O"])]
    task = tapir.write_task(tmp_path, some, some)
    assert tapir.load_corpus(str(task)) == some


@pytest.mark.parametrize("at_fault", ["train", "valid", "test"])
def test_a_task_is_written_as_a_whole_or_not_at_all(tmp_path: Path, at_fault: str) -> None:
    for bad, reason in (
        (([], []), "sentence 1: it has no word"),
        ((["two pounds"], ["O"]), "sentence 1: 'two pounds' is empty or has a space"),
        ((["play"], ["O"], "two\nlines"), "sentence 1: the intent"),
        ((["play"], []), "sentence 1: 1 words and 0 labels"),
    ):
        splits: dict[str, Any] = {split: SENTENCES for split in ("train", "valid", "test")}
        splits[at_fault] = [SENTENCES[0], bad]
        with pytest.raises(tapir.Error, match=reason):
            tapir.write_task(tmp_path / "shop", **splits)
        assert list(tmp_path.iterdir()) == [], "nothing is half-written"


def test_intents_are_kept(tmp_path: Path) -> None:
    labels = ["O", "B-item"]
    some = [(["two", "pears"], labels, "buy"), (["no", "tea"], labels, "give back")]
    task = tapir.write_task(tmp_path, some, [*some, (["pears"], ["B-item"])])
    read = tapir.load_corpus(str(task))
    assert [sentence.intent for sentence in read] == ["buy", "give back", None]
    assert read == [some[0][:2], some[1][:2], (["pears"], ["B-item"])]
    again = tapir.load_corpus(str(tapir.write_task(tmp_path / "again", read, read)))
    assert [sentence.intent for sentence in again] == ["buy", "give back", None]


def test_settings_are_those_of_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def train(preset: str, out: Path, settings: list[str], *_: Any) -> str:
        given.extend(settings)
        return "{}"

    monkeypatch.setattr(_tapir, "train", train, raising=False)
    settings = {
        "a": True, "b": False, "c": 7, "d": 0.5, "e": "shop.toml", "f": ["x", "ü"], "g": (True, 1),
    }
    tapir.train("small/snips", tmp_path, settings=settings, seed=3)
    assert given == [
        "a=true", "b=false", "c=7", "d=0.5", "e=shop.toml", 'f=["x", "ü"]', "g=[true, 1]", "seed=3",
    ]


@pytest.mark.skipif(hasattr(_tapir, "train"), reason="this build can train")
def test_a_build_without_training_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="--features train"):
        tapir.train("small/snips", tmp_path)


@pytest.mark.skipif(not hasattr(_tapir, "train"), reason="built without the feature `train`")
def test_training(tmp_path: Path) -> None:
    task = tapir.write_task(tmp_path / "shop", SENTENCES, SENTENCES[:8])
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    run: dict[str, Any] = {"settings": {"task": str(task)}, "epochs": 2, "seed": 1}
    with pytest.raises(KeyboardInterrupt):
        tapir.train("small/snips", tmp_path / "run", show=stop, **run)
    done = tapir.train("small/snips", tmp_path / "run", show=lines.append, **run)
    assert {"model", "reports", "valid", "test"} <= set(done)
    model = tapir.Model.load(tmp_path / "run")
    assert "B-item" in model.labels
