"""Label a column of a Ray dataset, on as many machines as there are.

    import ray, tapir.ray

    texts = ray.data.read_parquet("s3://corpus/")
    tapir.ray.label(texts, "text").write_parquet("s3://labelled/")

Every row's labels depend on its text alone. When a machine is lost, Ray computes its part again.
"""

from __future__ import annotations

from typing import Any

from ray.data import Dataset

from ._columns import Errors, Labeller
from ._given import GivenModel


def label(
    dataset: Dataset,
    column: str = "text",
    *,
    model: GivenModel = "snips",
    prefix: str = "",
    errors: Errors = "raise",
    batch_size: int = 1024,
    resources: dict[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Adds the columns `words`, `labels` and `spans`, and `intent` if the model knows intents.

    Their names begin with `prefix`.

    `model` is a name that ships, a path that is looked up here, or a model; workers need no files.
    `options` are those of `Model.tag`: `threshold`, `window`, `mode`, `final_pass`. `resources` are
    those of `Dataset.map_batches`, such as `num_cpus`.

    Rows without a text get no labels. A text that cannot be labelled, of more than 10,000 words or
    with one of more than 4,096 bytes, ends the job; with `errors="null"` its row gets no labels.
    """
    labeller = Labeller(model, column, prefix, options, errors)
    # Many datasets know their columns only when they are read; then a worker looks.
    names = dataset.columns(fetch_if_missing=False)
    if names:
        labeller.check(names)
    return dataset.map_batches(
        # A function, and not an actor: Ray runs those of a lost machine again elsewhere.
        lambda table: labeller(table),
        batch_size=batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        **(resources or {}),
    )
