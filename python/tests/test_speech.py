"""Real speech: what recognisers hear of flite's voice, every partial hypothesis labelled."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import tapir
from tapir.integrations import Utterance

EXAMPLE = Path(__file__).parents[2] / "examples/speech/speech.py"
PACKAGES = {"moonshine": "moonshine_voice", "pocketsphinx": "pocketsphinx"}
TEXTS = ["play some jazz by miles davis", "book a table for two in boston"]

pytestmark = pytest.mark.heavy


def example() -> Any:
    spec = importlib.util.spec_from_file_location("speech", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["speech"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("recogniser", PACKAGES)
def test_every_hypothesis_is_labelled(snips: tapir.Model, recogniser: str) -> None:
    if shutil.which("flite") is None:
        pytest.skip("nobody speaks: apt-get install flite")
    pytest.importorskip(PACKAGES[recogniser])
    utterance = Utterance(snips)
    for text in TEXTS:
        heard = example().listen(text, recogniser, utterance)
        assert len(heard) > 3
        labels: list[str] = []
        for hypothesis, labelled in heard:
            assert labelled.words == snips.words(hypothesis)
            fresh = snips.session()
            fresh.update(hypothesis)
            same = fresh.finish().labels if labelled.final else fresh.labels
            assert labelled.labels == same, "as if nothing had been taken back"
            if not labelled.final:
                labelled.update.apply(labels)
                assert labels == labelled.labels
        last = heard[-1][1]
        assert last.final and last.settled == len(last.words) > 0
        assert any(word in text.split() for word in last.words)
