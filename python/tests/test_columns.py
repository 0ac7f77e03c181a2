"""What Ray and Spark have their workers do, without either."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tapir

pa = pytest.importorskip("pyarrow")

from tapir import _columns
from tapir._columns import Errors, Labeller

LONG = "x" * 5000


def labeller(
    model: tapir.Model, *, prefix: str = "", errors: Errors = "raise", **options: Any
) -> Labeller:
    """One that has gone to a worker."""
    made: Labeller = pickle.loads(
        pickle.dumps(Labeller(model, "text", prefix, options, errors))
    )
    return made


def test_rows_get_their_labels(snips: tapir.Model) -> None:
    texts = ["play some jazz", None, "", "book a table"]
    table = labeller(snips)(pa.table({"text": texts}))
    assert table.column_names == ["text", "words", "labels", "spans"]
    tagged = [None if text is None else snips.tag(text) for text in texts]
    assert table["labels"].to_pylist() == [one and one.labels for one in tagged[:2]] + [
        [], snips.tag("book a table").labels,
    ]
    [batch] = pa.table({"text": texts}).to_batches()
    assert labeller(snips)(batch).column("labels").to_pylist() == table["labels"].to_pylist()


def test_columns_that_are_there(snips: tapir.Model) -> None:
    table = pa.table({"text": ["play"], "words": ["mine"]})
    with pytest.raises(tapir.Error, match="a column 'words' already.*prefix="):
        labeller(snips)(table)
    labelled = labeller(snips, prefix="tapir_")(table)
    assert labelled["words"].to_pylist() == ["mine"]
    assert labelled["tapir_words"].to_pylist() == [["play"]]
    with pytest.raises(tapir.Error, match=r"no column 'text'; there are \['body'\]"):
        labeller(snips)(pa.table({"body": ["play"]}))
    # An intent is a column only of models that know some.
    intents = tapir.Model.load("snips")
    with pytest.raises(tapir.Error, match="a column 'intent' already"):
        labeller(intents)(pa.table({"text": ["play"], "intent": [1]}))
    assert "intent" in labeller(snips)(pa.table({"text": ["play"], "intent": [1]})).column_names


def test_some_engines_take_no_heed_of_case(snips: tapir.Model) -> None:
    made = labeller(snips)
    made.check(["text", "Words"])
    with pytest.raises(tapir.Error, match="'Words'"):
        made.check(["text", "Words"], ignore_case=True)


@pytest.mark.parametrize(
    ("bad", "reason"), [(LONG, "longer than the limit"), ("play " * 10_001, "10001 words")]
)
def test_a_text_that_cannot_be_labelled(snips: tapir.Model, bad: str, reason: str) -> None:
    table = pa.table({"text": ["play some jazz", bad, None, "book a table"]})
    with pytest.raises(tapir.Error, match=f"begins '{bad[:9]}.*{reason}.*errors=\"null\""):
        labeller(snips)(table)
    labelled = labeller(snips, errors="null")(table)
    good = snips.tag(["play some jazz", "book a table"])
    expected = [good[0].labels, None, None, good[1].labels]
    assert labelled["labels"].to_pylist() == expected
    assert labelled["words"].to_pylist()[1] is labelled["spans"].to_pylist()[1] is None


def test_lists_of_words_are_taken_as_they_are(snips: tapir.Model) -> None:
    table = pa.table({"text": [["play", "jazz"], ["play", LONG], ["Dr. Who"]]})
    words = labeller(snips, errors="null")(table)["words"].to_pylist()
    assert words == [["play", "jazz"], None, ["Dr. Who"]]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([["play", "jazz"], ["play", None], None], r"begins \['play', None\]: a word is a str"),
        ([1, None, 2], "begins 1: expected a text or a list of words, not int"),
        ([b"play", None], "begins b'play': expected a text or a list of words, not bytes"),
    ],
)
def test_rows_that_are_no_texts(snips: tapir.Model, rows: list[Any], reason: str) -> None:
    table = pa.table({"text": rows})
    with pytest.raises(tapir.Error, match=f"column 'text', .*{reason}.*errors=\"null\""):
        labeller(snips)(table)
    labels = labeller(snips, errors="null")(table)["labels"].to_pylist()
    good = [row if isinstance(row, list) and None not in row else None for row in rows]
    assert labels == [None if row is None else snips.tag(row, words=True).labels for row in good]


def test_a_process_loads_a_model_once(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers get the labeller anew with every task."""
    loaded: dict[bytes, tapir.Model] = {}
    monkeypatch.setattr(_columns, "_MODELS", loaded)
    data = pickle.dumps(Labeller(snips, "text", "", {}))
    other = pickle.dumps(Labeller("pos", "text", "", {}))
    table = pa.table({"text": ["play some jazz"]})
    models = []
    for _ in range(2):
        for sent in (data, other):
            pickle.loads(sent)(table)
        models.append(list(loaded.values()))
    assert len(loaded) == 2 and all(a is b for a, b in zip(*models, strict=True))
    assert [model.task for model in loaded.values()] == [snips.task, "ewt"]


def test_what_is_wrong_is_said_before_there_is_work(snips: tapir.Model) -> None:
    for option in ({"threads": 2}, {"progress": True}):
        with pytest.raises(tapir.Error, match="leave it to the engine"):
            labeller(snips, **option)
    with pytest.raises(tapir.Error, match='expected "raise" or "null"'):
        labeller(snips, errors="coerce")  # type: ignore[arg-type]
    with pytest.raises(tapir.Error, match="threshold"):
        labeller(snips, threshold=2)
    with pytest.raises(TypeError, match="treshold"):
        labeller(snips, treshold=0.2)
