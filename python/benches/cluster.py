"""Whole corpora by Ray and by Spark on this machine: words a second with one and two workers.

    python benches/cluster.py

The same sentences are labelled by `Model.tag` in this process, by Ray and by Spark, with one core
and with two, in turns. Each system has labelled some before it is timed, so that its start is not
in the figures. A system that is not installed is left out, which is said.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import tapir

#: Labels all texts on so many cores.
System = Callable[[int], None]


def here(texts: list[str]) -> System:
    """This process."""
    model = tapir.Model.load("snips-small")

    def label(cores: int) -> None:
        assert len(model.tag(texts, threads=cores, progress=False)) == len(texts)

    return label


def ray(texts: list[str]) -> System:
    """Ray, with as many tasks at once as cores are asked for."""
    import pyarrow as pa
    from ray import data, init

    import tapir.ray

    init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    data.DataContext.get_current().enable_progress_bars = False
    table = pa.table({"text": texts})

    def label(cores: int) -> None:
        dataset = data.from_arrow(table).repartition(8)
        resources = {"concurrency": cores}
        labelled = tapir.ray.label(dataset, model="snips-small", resources=resources)
        assert labelled.materialize().count() == len(texts)

    return label


def spark(texts: list[str]) -> System:
    """Spark, with as many partitions as cores are asked for."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import tapir.spark

    builder = SparkSession.builder.master("local[2]").appName("tapir")
    for key, value in {"ui.enabled": "false", "driver.bindAddress": "127.0.0.1"}.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    frame = session.createDataFrame([(text,) for text in texts], "text string").cache()

    def label(cores: int) -> None:
        labelled = tapir.spark.label(frame.coalesce(cores), model="snips-small")
        labelled.write.format("noop").mode("overwrite").save()

    return label


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="words a second on one worker and on two")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=20, help="how often the test split is read")
    parser.add_argument("--dollars", type=float, default=0.04, help="price of a core and hour")
    chosen = parser.parse_args()
    corpus = [words for words, _ in tapir.load_corpus("snips", "test")] * chosen.repeat
    texts = [" ".join(words) for words in corpus]
    count = sum(map(len, corpus))
    systems: dict[str, System] = {}
    for name, make in (("Model.tag", here), ("Ray", ray), ("Spark", spark)):
        try:
            systems[name] = make(texts)
        except ImportError as error:
            print(f"{name}: left out ({error})")
    times: dict[tuple[str, int], list[float]] = {}
    for number in range(chosen.rounds + 1):
        for name, label in systems.items():
            for cores in (1, 2):
                start = time.perf_counter()
                label(cores)
                if number > 0:
                    times.setdefault((name, cores), []).append(time.perf_counter() - start)
    print(f"{count} words, {chosen.rounds} rounds, medians")
    for name in systems:
        one, two = (statistics.median(times[name, cores]) for cores in (1, 2))
        hours = 1e9 / count * two / 3600
        print(
            f"{name:10} one worker {count / one:7.0f} words a second, two {count / two:7.0f} "
            f"({one / two:.2f} times); a billion words: {hours:.1f} hours on two cores, "
            f"{2 * hours * chosen.dollars:.2f} dollars at {chosen.dollars} a core and hour"
        )


if __name__ == "__main__":
    main()
