"""Models that all tests share: they are loaded once, and do not change."""

from __future__ import annotations

import pytest

import tapir


@pytest.fixture(scope="session")
def snips() -> tapir.Model:
    return tapir.Model.load("snips-small")


@pytest.fixture(scope="session")
def pos() -> tapir.Model:
    return tapir.Model.load("pos")


@pytest.fixture(scope="session")
def corpus() -> list[tuple[list[str], list[str]]]:
    """Some sentences of the test split that ships."""
    return tapir.load_corpus("snips", "test")[:40]
