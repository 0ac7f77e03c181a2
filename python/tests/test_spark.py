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
