"""Real speech: what recognisers hear of flite's voice, every partial hypothesis labelled."""

from __future__ import annotations

import doctest
import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import tapir
from tapir.integrations import Utterance

SPEECH = Path(__file__).parents[2] / "examples/speech"
SNIPS = Path(__file__).parents[2] / "crates/tapir-models/data/snips"
PACKAGES = {"moonshine": "moonshine_voice", "pocketsphinx": "pocketsphinx"}
TEXTS = ["play some jazz by miles davis", "book a table for two in boston"]



def example(name: str) -> Any:
    """A program of the examples, as a module."""
    if str(SPEECH) not in sys.path:
        sys.path.insert(0, str(SPEECH))
    return importlib.import_module(name)


def test_labels_go_where_their_letters_were_heard() -> None:
    align = example("align")
    assert doctest.testmod(align).failed == 0

    def project(written: str, labels: str, heard: str) -> str:
        return " ".join(align.project(written.split(), labels.split(), heard.split()))

    same = "rate this novel 0 out of 6", "O O B-type B-value O O B-best"
    assert project(*same, "great this novel zero out of six") == same[1]
    # A span of two words that was heard as one, and one of one word that was heard as two.
    assert project("play west bam now", "O B-a I-a O", "play westbam now") == "O B-a O"
    assert project("play westbam now", "O B-a O", "play west bam now") == "O B-a I-a O"
    # Two spans of one kind beside each other stay two; what was not heard is gone.
    assert project("play abba queen", "O B-a B-a", "play abba queen") == "O B-a B-a"
    assert project("play abba queen", "O B-a B-a", "play abba") == "O B-a"
    assert project("play abba", "O B-a", "") == ""


def test_hearing_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    hear = example("hear")
    file = tmp_path / "heard.jsonl"
    assert hear.heard_before(file, "moonshine") == set()
    lines = [{"number": 0, "recogniser": "moonshine"}, {"number": 3, "recogniser": "pocketsphinx"}]
    whole = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(whole + '{"number": 6, "recogni')
    assert hear.heard_before(file, "moonshine") == {0}
    assert file.read_text() == whole, "what was cut off is gone"
    assert hear.heard_before(file, "pocketsphinx") == {3}


def test_what_was_heard_can_be_measured(snips: tapir.Model) -> None:
    """On sentences that were heard as they are written, the measure is that of the corpus."""
    align, measure = example("align"), example("measure")
    gold = align.read_gold(SNIPS / "test")[:60]
    heard = [
        {"number": i, "heard": [" ".join(sentence.words[:n]) for n in (2, len(sentence.words))]}
        for i, sentence in enumerate(gold)
    ]
    result = measure.measure(snips, heard, gold)
    assert (result["sentences"], result["hypotheses"]) == (60, 120)
    assert result["words_taken_back"] == 0
    assert result["words_read"] == sum(len(sentence.words) for sentence in gold)
    read = [one.labels for one in snips.tag([sentence.words for sentence in gold])]
    right = sum(labels == sentence.labels for labels, sentence in zip(read, gold, strict=True))
    assert right / 60 <= result["slot_types_all_right"]
    assert 0.85 < result["slot_f1"] <= 1


@pytest.mark.parametrize("recogniser", ["moonshine", "pocketsphinx"])
def test_what_recognisers_heard_is_labelled(snips: tapir.Model, recogniser: str) -> None:
    """Every hypothesis that was recorded is read, and gives what a fresh session gives."""
    heard = list(example("align").read_heard(SPEECH / "heard" / f"{recogniser}.jsonl"))
    assert len(heard) == 200
    for line in heard[:40]:
        session = snips.session(undo=1000)
        for hypothesis in line["heard"]:
            session.update(hypothesis)
            fresh = snips.session()
            fresh.update(hypothesis)
            assert session.labels == fresh.labels


@pytest.mark.heavy
@pytest.mark.parametrize("recogniser", PACKAGES)
def test_every_hypothesis_is_labelled(snips: tapir.Model, recogniser: str) -> None:
    if shutil.which("flite") is None:
        pytest.skip("nobody speaks: apt-get install flite")
    pytest.importorskip(PACKAGES[recogniser])
    utterance = Utterance(snips)
    for text in TEXTS:
        heard = example("speech").listen(text, recogniser, utterance)
        assert len(heard) > 3
        labels: list[str] = []
        for hypothesis, labelled in heard:
            assert labelled.words == snips.words(hypothesis)
            fresh = snips.session()
            fresh.update(hypothesis)
            same = fresh.finish().labels if labelled.final else fresh.labels
            assert labelled.labels == same, "as if nothing had been taken back"
            labelled.update.apply(labels)
            assert labels == labelled.labels
        last = heard[-1][1]
        assert last.final and last.committed == len(last.words) > 0
        assert any(word in text.split() for word in last.words)
