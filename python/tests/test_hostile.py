"""Whatever is given, the answer is a Python exception, never a panic or the end of the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapir

NAN = float("nan")


@pytest.mark.parametrize("threshold", [NAN, -0.1, 1.5, float("inf"), -float("inf")])
def test_thresholds(snips: tapir.Model, threshold: float) -> None:
    for call in (
        lambda: snips.session(threshold=threshold),
        lambda: snips.session().set_threshold(threshold),
        lambda: snips.tag("play", threshold=threshold),
        lambda: snips.trace("play", threshold=threshold),
        lambda: tapir.evaluate(snips, [(["play"], ["O"])], threshold=threshold),
        lambda: tapir.sweep(snips, [(["play"], ["O"])], thresholds=[threshold]),
    ):
        with pytest.raises(tapir.Error, match="threshold"):
            call()


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, b"play", object(), {"play": 1}, [None], [1], [["a", 2]]]
)
def test_wrong_types(snips: tapir.Model, value: Any) -> None:
    session = snips.session()
    for call in (snips.tag, snips.trace, session.update, session.push, snips.words):
        with pytest.raises(TypeError):
            call(value)
    assert len(session) == 0


def test_tables_are_not_taken_for_their_columns(snips: tapir.Model) -> None:
    pandas, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"text": ["play some jazz"], "id": ["7"]})
    session = snips.session()
    for table in (frame, pa.Table.from_pandas(frame)):
        for call in (snips.tag, snips.trace, session.update):
            with pytest.raises(TypeError, match=f"not {type(table).__name__}"):
                call(table)
        with pytest.raises(TypeError, match="item 1"):
            snips.tag(["play", table])
    assert len(session) == 0
    assert [len(one) for one in snips.tag(frame["text"])] == [3]


def test_the_item_at_fault_is_named(snips: tapir.Model) -> None:
    with pytest.raises(TypeError, match="item 1: expected a text or a list of words, not float"):
        snips.tag(["play", NAN])  # type: ignore[list-item]
    with pytest.raises(tapir.Error, match="item 2: an empty word"):
        snips.tag(["play", "some", ["a", ""]])


def test_words_that_cannot_be(snips: tapir.Model) -> None:
    session = snips.session()
    with pytest.raises(tapir.Error, match="empty word"):
        session.push("")
    with pytest.raises(tapir.Error, match="longer than the limit"):
        session.push("x" * 5000)
    with pytest.raises(tapir.Error, match="longer than the limit"):
        session.update(["play", "x" * 5000])
    with pytest.raises(tapir.Error, match="longer than the limit"):
        snips.tag("x" * 50_000_000)
    with pytest.raises(tapir.Error, match="the longest sentence"):
        snips.tag("play " * 10_001)
    assert len(session) == 0 and session.push("play").step == 1


def test_surrogates_and_other_odd_text(snips: tapir.Model, pos: tapir.Model) -> None:
    for call in (snips.session().push, snips.tag, snips.words, snips.trace):
        with pytest.raises(UnicodeEncodeError):
            call("\ud800")
    for text in ("\0", "\u202e", "👩‍👩‍👧", "ﷺ" * 50, "\x1b[31m", "e\u0301" * 20):
        for model in (snips, pos):
            session = model.session()
            assert session.push(text).length == 1
            repr(session), repr(model.tag(text)), model.tag(text).to_dict()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_labelled(text: str) -> None:
    model = tapir.Model.load("snips-small")
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    tagged = model.tag(text)
    assert len(tagged.words) == len(tagged.labels) == len(tagged.probabilities)
    assert tagged.offsets is not None
    assert all(0 <= start < end <= len(text) for start, end in tagged.offsets)


def test_numbers_that_are_too_large(snips: tapir.Model) -> None:
    session = snips.session(undo=2**63, window=2**63)
    for _ in range(3):
        session.push("play")
    assert session.revoke(2).length == 1
    with pytest.raises(tapir.Error, match="nothing was changed"):
        session.revoke(2**63)
    for bad in (-1, 2**64):
        with pytest.raises((OverflowError, tapir.Error)):
            session.revoke(bad)
        with pytest.raises(OverflowError):
            snips.session(undo=bad)
    assert snips.tag(["play"], threads=0) == snips.tag(["play"], threads=10**9)


def test_names_of_modes_and_models(snips: tapir.Model, tmp_path: Path) -> None:
    with pytest.raises(tapir.Error, match='"two-pass", "restart" or "first-pass"'):
        snips.session(mode="third-pass")  # type: ignore[arg-type]
    for name in ("no/such", "chess", "", "a\0b", "\udcff", str(tmp_path)):
        with pytest.raises((tapir.Error, ValueError)):
            tapir.Model.load(name)
    with pytest.raises(tapir.Error, match="snips, snips-small, pos"):
        tapir.Model.load("chess")
    for file in ("config.json", "labels.txt", "vocab.txt", "model.safetensors"):
        (tmp_path / file).write_text("{")
    with pytest.raises(tapir.Error, match="config.json"):
        tapir.Model.load(tmp_path)
    with pytest.raises(TypeError):
        tapir.Model.load(None)  # type: ignore[arg-type]
    with pytest.raises(tapir.Error, match="exists already"):
        snips.save(tmp_path)


def test_an_iterator_that_fails(snips: tapir.Model) -> None:
    def broken() -> Any:
        yield "play"
        raise RuntimeError("the file ended")

    with pytest.raises(RuntimeError, match="the file ended"):
        snips.tag(broken())
    session = snips.session()
    session.push("play")
    with pytest.raises(RuntimeError, match="the file ended"):
        session.update(broken())
    assert len(session) == 1


def test_errors_are_value_errors_of_the_package() -> None:
    assert issubclass(tapir.Error, ValueError) and tapir.Error.__module__ == "tapir"
