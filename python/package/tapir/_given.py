"""A model, as people give one."""

from __future__ import annotations

from os import PathLike
from typing import TypeAlias

from ._tapir import Model

#: A model, the name of one that ships, or the path of one.
GivenModel: TypeAlias = Model | str | PathLike[str]


def load(given: GivenModel) -> Model:
    """The model itself, loaded if it is only named."""
    return given if isinstance(given, Model) else Model.load(given)
