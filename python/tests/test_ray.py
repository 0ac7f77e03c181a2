"""Ray: one node, or a cluster of two of which one is killed, gives what one machine gives."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import tapir

ray = pytest.importorskip("ray", reason="pip install ray[data]")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as parquet
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import tapir.ray as tapir_ray

pytestmark = pytest.mark.heavy

FILES, ROWS = 24, 30


def texts() -> list[str | None]:
    sentences = [" ".join(words) for words, _ in tapir.load_corpus("snips", "test")]
    return [None if i == 7 else sentences[i % len(sentences)] for i in range(FILES * ROWS)]


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    rows = texts()
    for file in range(FILES):
        part = range(file * ROWS, (file + 1) * ROWS)
        table = pa.table({"id": list(part), "text": [rows[i] for i in part]})
        parquet.write_table(table, folder / f"{file:02}.parquet")


def slow(table: Any) -> Any:
    """Takes its time, so that most of the work is ahead when the node dies; says where it is."""
    time.sleep(0.5)
    node = ray.get_runtime_context().get_node_id()
    return table.append_column("node", pa.array([node] * len(table)))


@ray.remote(num_cpus=1)
def start() -> str:
    """Has a node start a process and load what the work needs, which may take it half a minute."""
    import ray.data  # noqa: F401

    import tapir.ray  # noqa: F401

    return str(ray.get_runtime_context().get_node_id())


def check(rows: list[dict[str, Any]], model: tapir.Model) -> None:
    """No row is lost, none is there twice, and each is what one machine gives."""
    given = texts()
    assert sorted(row["id"] for row in rows) == list(range(len(given)))
    known = {i: text for i, text in enumerate(given) if text is not None}
    expected = dict(zip(known, model.tag(list(known.values())), strict=True))
    for row in rows:
        tagged = expected.get(row["id"])
        if tagged is None:
            assert row["words"] is row["labels"] is row["spans"] is None
        else:
            assert (list(row["words"]), list(row["labels"])) == (tagged.words, tagged.labels)
            assert [dict(span) for span in row["spans"]] == tagged.to_dict()["spans"]


@pytest.mark.cluster
def test_one_node_of_two_is_killed(snips: tapir.Model, tmp_path: Path) -> None:
    write(tmp_path)
    memory = 200 * 1024 * 1024
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": memory, "include_dashboard": False},
    )
    try:
        other = cluster.add_node(num_cpus=1, object_store_memory=memory)
        ray.init(address=cluster.address, log_to_driver=False)
        assert ray.cluster_resources()["CPU"] == 2
        for node in ray.nodes():
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            started = start.options(scheduling_strategy=where).remote()
            assert ray.get(started, timeout=300) == node["NodeID"]
        dataset = ray.data.read_parquet(str(tmp_path), override_num_blocks=FILES)
        dataset = dataset.map_batches(slow, batch_size=ROWS, batch_format="pyarrow")
        labelled = tapir_ray.label(dataset, model=snips, batch_size=ROWS)
        rows: list[dict[str, Any]] = []
        killed_after = 0
        for table in labelled.iter_batches(batch_size=ROWS, batch_format="pyarrow"):
            rows += table.to_pylist()
            if not killed_after and any(row["node"] == other.node_id for row in rows):
                cluster.remove_node(other, allow_graceful=False)
                killed_after = len(rows)
        assert 0 < killed_after < len(rows), "it worked, and then it was dead"
        check(rows, snips)
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_labels_do_not_depend_on_partitions(snips: tapir.Model, tmp_path: Path) -> None:
    write(tmp_path / "texts")
    memory = 200 * 1024 * 1024
    ray.init(
        num_cpus=2, object_store_memory=memory, include_dashboard=False, log_to_driver=False
    )
    try:
        for blocks, batch in ((1, 1024), (5, 7)):
            dataset = ray.data.read_parquet(str(tmp_path / "texts"), override_num_blocks=blocks)
            labelled = tapir_ray.label(dataset, model=snips, batch_size=batch)
            labelled.write_parquet(str(tmp_path / f"labelled-{blocks}"))
            check(parquet.read_table(tmp_path / f"labelled-{blocks}").to_pylist(), snips)
    finally:
        ray.shutdown()


def test_what_is_wrong_is_said_at_once(snips: tapir.Model) -> None:
    with pytest.raises(tapir.Error, match="threshold"):
        tapir_ray.label(object(), model=snips, threshold=2)


class Known:
    """Stands for a dataset whose columns are known before it is read."""

    def columns(self, fetch_if_missing: bool = True) -> list[str]:
        assert not fetch_if_missing, "nothing is read for it"
        return ["text", "words"]


def test_columns_that_are_there_are_said_at_once(snips: tapir.Model) -> None:
    with pytest.raises(tapir.Error, match="a column 'words' already.*prefix="):
        tapir_ray.label(Known(), model=snips)
    with pytest.raises(tapir.Error, match="no column 'body'; there are"):
        tapir_ray.label(Known(), "body", model=snips, prefix="tapir_")
