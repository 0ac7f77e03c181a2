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

from ._columns import Errors, Labeller
from ._given import GivenModel


def label(
    frame: DataFrame,
    column: str = "text",
    *,
    model: GivenModel = "snips",
    prefix: str = "",
    errors: Errors = "raise",
    **options: Any,
) -> DataFrame:
    """Adds the columns `words`, `labels` and `spans`, and `intent` if the model knows intents.

    Their names begin with `prefix`.

    `model` is a name that ships, a path that is looked up here, or a model; executors need the
    package and no files. `options` are those of `Model.tag`: `threshold`, `window`, `mode`,
    `final_pass`.

    Rows without a text get no labels. A text that cannot be labelled, of more than 10,000 words or
    with one of more than 4,096 bytes, ends the job; with `errors="null"` its row gets no labels.
    """
    labeller = Labeller(model, column, prefix, options, errors)
    case_sensitive = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    labeller.check(frame.columns, ignore_case=not case_sensitive)
    schema = StructType(list(frame.schema.fields))
    for name, kind in labeller.columns().items():
        schema = schema.add(name, from_arrow_type(kind), nullable=True)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield labeller(batch)

    return frame.mapInArrow(work, schema)
