"""How well a model labels what recognisers hear: every hypothesis is given to `update`.

    python examples/speech/measure.py examples/speech/heard/moonshine.jsonl \\
        crates/tapir-models/data/snips/test --model snips -o result.json

Slot types are those of the spoken sentence, however they were heard; slot F1 is that of spans on the
words that were heard, to which the labels of the sentence are given letter by letter (align.py).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from align import Gold, project, read_gold, read_heard

import tapir


def kinds(spans: list[tapir.Span]) -> list[str]:
    """What they are, in an order of its own."""
    return sorted(span.label for span in spans)


def measure(model: tapir.Model, heard: list[dict[str, Any]], gold: list[Gold]) -> dict[str, Any]:
    """Everything that is measured."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for line in heard:
        sentence = gold[line["number"]]
        session = model.session(undo=1000)
        words: list[str] = []
        for hypothesis in line["heard"]:
            before, words = words, model.words(hypothesis)
            start = time.perf_counter()
            session.update(words)
            seconds += time.perf_counter() - start
            same = len(os.path.commonprefix([before, words]))
            counts["hypotheses"] += 1
            counts["taken back"] += len(before) - same
            counts["read"] += len(words) - same
        end = session.finish()
        heard_labels = project(sentence.words, sentence.labels, words) if words else []
        expected, found = (
            set(tapir.spans(words, labels)) for labels in (heard_labels, list(end.labels))
        )
        counts["sentences"] += 1
        spoken = tapir.spans(sentence.words, sentence.labels)
        counts["types"] += kinds(end.spans) == kinds(spoken)
        intent = session.intent
        counts["intent"] += intent is not None and intent.label == sentence.intent
        counts["right"] += len(found & expected)
        counts["found"] += len(found)
        counts["expected"] += len(expected)
    sentences = counts["sentences"]
    return {
        "sentences": sentences,
        "hypotheses": counts["hypotheses"],
        "words_read": counts["read"],
        "words_taken_back": counts["taken back"],
        "slot_types_all_right": counts["types"] / sentences,
        "slot_f1": 2 * counts["right"] / max(1, counts["found"] + counts["expected"]),
        "intent_accuracy": counts["intent"] / sentences if model.intents else None,
        "milliseconds_per_hypothesis": 1e3 * seconds / counts["hypotheses"],
    }


def provenance() -> dict[str, Any]:
    """The checkout that this file is in, as results of `tapir` name theirs."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=40"]
    described = subprocess.run([*git, "--dirty"], capture_output=True, text=True)
    commit = described.stdout.strip()
    return {
        "version": tapir.__version__,
        "commit": commit.removesuffix("-dirty") or None,
        "modified": commit.endswith("-dirty"),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="labels what recognisers heard")
    parser.add_argument("heard", type=Path, help="what hear.py has written")
    parser.add_argument("gold", type=Path, help="the folder of seq.in, seq.out and label")
    parser.add_argument("--model", default="snips")
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    heard = list(read_heard(chosen.heard))
    model = tapir.Model.load(chosen.model)
    result = {
        "model": chosen.model,
        "recogniser": heard[0]["recogniser"],
        "provenance": provenance(),
        **measure(model, heard, read_gold(chosen.gold)),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if chosen.output:
        chosen.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
