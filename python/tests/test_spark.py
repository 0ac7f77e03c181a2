"""Spark, on this machine: the same labels whatever the partitions."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tapir

pytest.importorskip("pyspark", reason="pip install pyspark")
pytest.importorskip("pyarrow")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark.sql import SparkSession

import tapir.spark as tapir_spark

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    # Workers run what is tested, and not another Python of the machine.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tapir")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def test_labels_do_not_depend_on_partitions(
    spark: Any, snips: tapir.Model, tmp_path: Path
) -> None:
    sentences = [" ".join(words) for words, _ in tapir.load_corpus("snips", "test")[:100]]
    rows = [(i, text if i != 7 else None) for i, text in enumerate(sentences)]
    frame = spark.createDataFrame(rows, "id long, text string")
    frame.write.parquet(str(tmp_path / "texts"))
    texts = spark.read.parquet(str(tmp_path / "texts"))
    expected = snips.tag(sentences)
    for partitions in (1, 5):
        labelled = tapir_spark.label(texts.repartition(partitions), model=snips, prefix="slot_")
        labelled.write.parquet(str(tmp_path / f"labelled-{partitions}"))
        found = spark.read.parquet(str(tmp_path / f"labelled-{partitions}")).collect()
        assert sorted(row.id for row in found) == list(range(100)), "none lost, none twice"
        for row in found:
            if row.id == 7:
                assert row.slot_labels is None
                continue
            tagged = expected[row.id]
            assert (row.slot_words, row.slot_labels) == (tagged.words, tagged.labels)
            spans = [span.asDict() for span in row.slot_spans]
            assert spans == tagged.to_dict()["spans"]


def test_columns_that_are_there_are_said_at_once(spark: Any, snips: tapir.Model) -> None:
    frame = spark.createDataFrame([("play some jazz", "x")], "text string, Words string")
    # Spark takes both for one column.
    with pytest.raises(tapir.Error, match="a column 'Words' already.*prefix="):
        tapir_spark.label(frame, model=snips)
    with pytest.raises(tapir.Error, match="no column 'body'; there are"):
        tapir_spark.label(frame, "body", model=snips, prefix="tapir_")
    [row] = tapir_spark.label(frame, model=snips, prefix="tapir_").collect()
    assert row.Words == "x" and row.tapir_words == ["play", "some", "jazz"]


def test_one_bad_row_can_be_left_out(spark: Any, snips: tapir.Model) -> None:
    rows = [(0, "play some jazz"), (1, "x" * 5000), (2, None), (3, "book a table")]
    frame = spark.createDataFrame(rows, "id long, text string").coalesce(1)
    found = tapir_spark.label(frame, model=snips, errors="null").collect()
    labels = {row.id: row.labels for row in found}
    expected = snips.tag(["play some jazz", "book a table"])
    assert labels == {0: expected[0].labels, 1: None, 2: None, 3: expected[1].labels}
    with pytest.raises(Exception, match="longer than the limit"):
        tapir_spark.label(frame, model=snips).collect()
