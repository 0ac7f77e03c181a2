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
def outside() -> str:
    """What somebody says who wants nothing of the model `snips`."""
    text = "the mitochondria produce most of the energy of a cell"
    intent = tapir.Model.load("snips").tag(text).intent
    assert intent is not None and intent.outside, "or the tests below say nothing"
    return text


@pytest.fixture(scope="session")
def corpus() -> list[tapir.Sentence]:
    """Some sentences of the test split that ships."""
    return tapir.load_corpus("snips", "test")[:40]
