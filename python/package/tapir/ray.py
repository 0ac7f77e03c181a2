"""Label a column of a Ray dataset, on as many machines as there are.

    import ray, tapir.ray

    texts = ray.data.read_parquet("s3://corpus/")
    tapir.ray.label(texts, "text").write_parquet("s3://labelled/")

Every row's labels depend on its text alone. When a machine is lost, Ray computes its part again.
"""

from __future__ import annotations

from typing import Any

from ray.data import Dataset

from ._columns import Labeller
from ._tapir import Model


def label(
    dataset: Dataset,
    column: str = "text",
    *,
    model: Model | str = "snips",
    prefix: str = "",
    batch_size: int = 1024,
    resources: dict[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Adds the columns `words`, `labels` and `spans`, which begin with `prefix`.

    `model` is a name that ships, a path that is looked up here, or a model; workers need no files.
    `options` are those of `Model.tag`: `threshold`, `window`, `mode`, `final_pass`. `resources` are
    those of `Dataset.map_batches`, such as `num_cpus`. Rows without a text get no labels.
    """
    labeller = Labeller(model, column, prefix, options)
    return dataset.map_batches(
        # A function, and not an actor: Ray runs those of a lost machine again elsewhere.
        lambda table: labeller(table),
        batch_size=batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        **(resources or {}),
    )
