"""Label a column of a Spark frame.

    import tapir.spark

    texts = spark.read.parquet("s3://corpus/")
    tapir.spark.label(texts, "text").write.parquet("s3://labelled/")

Every row's labels depend on its text alone. When an executor is lost, Spark computes its part
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from ._columns import Labeller
from ._tapir import Model


def label(
    frame: DataFrame,
    column: str = "text",
    *,
    model: Model | str = "snips",
    prefix: str = "",
    **options: Any,
) -> DataFrame:
    """Adds the columns `words`, `labels` and `spans`, which begin with `prefix`.

    `model` is a name that ships, a path that is looked up here, or a model; executors need the
    package and no files. `options` are those of `Model.tag`: `threshold`, `window`, `mode`,
    `final_pass`. Rows without a text get no labels.
    """
    labeller = Labeller(model, column, prefix, options)
    schema = StructType(list(frame.schema.fields))
    for name, kind in labeller.columns().items():
        schema = schema.add(name, from_arrow_type(kind), nullable=True)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield labeller(batch)

    return frame.mapInArrow(work, schema)
