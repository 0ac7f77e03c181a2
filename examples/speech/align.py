"""Labels for what was heard: those of the written sentence, letter by letter.

    python examples/speech/align.py heard.jsonl crates/tapir-models/data/snips/train > corpus.jsonl

makes a corpus of final hypotheses (hear.py), whose labels are those of the sentences that were
spoken, to train on or to measure by. Words are split as those of SNIPS are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tapir


@dataclass(frozen=True)
class Gold:
    """A sentence of a corpus in the layout of SNIPS."""

    words: list[str]
    labels: list[str]
    intent: str | None


def read_gold(folder: Path) -> list[Gold]:
    """The sentences of a folder with `seq.in`, `seq.out` and, if intents are known, `label`."""
    words, labels = ((folder / name).read_text().splitlines() for name in ("seq.in", "seq.out"))
    known = folder / "label"
    intents = known.read_text().splitlines() if known.exists() else [None] * len(words)
    rows = zip(words, labels, intents, strict=True)
    return [Gold(words.split(), labels.split(), intent) for words, labels, intent in rows]


def read_heard(file: Path) -> Iterator[dict[str, Any]]:
    """The lines that hear.py has written."""
    yield from map(json.loads, file.read_text().splitlines())


def partners(written: list[str], heard: list[str]) -> list[int]:
    """For each word that was heard, the written word whose letters it shares most.

    >>> partners("what are the showtimes".split(), "what or the show times".split())
    [0, 1, 2, 3, 3]
    """
    theirs, ours = " ".join(written), " ".join(heard)
    word_of = [theirs[:i].count(" ") for i in range(len(theirs))]
    shared = [[0] * len(written) for _ in heard]
    for i, j in _pairs(theirs, ours):
        if " " not in (theirs[i], ours[j]):
            shared[ours[:j].count(" ")][word_of[i]] += 3 if theirs[i] == ours[j] else 1
    found = [max(range(len(written)), key=row.__getitem__) if any(row) else -1 for row in shared]
    for i, word in enumerate(found):
        if word < 0:
            found[i] = found[i - 1] if i else 0
    return found


def _pairs(theirs: str, ours: str) -> Iterator[tuple[int, int]]:
    """The letters that meet where one text becomes the other by the fewest changes."""
    costs = [list(range(len(ours) + 1))]
    for i, a in enumerate(theirs):
        row = [i + 1]
        for j, b in enumerate(ours):
            change = 0 if a == b else 2 if " " in (a, b) else 1
            row.append(min(costs[i][j] + change, costs[i][j + 1] + 1, row[j] + 1))
        costs.append(row)
    i, j = len(theirs), len(ours)
    while i and j:
        a, b = theirs[i - 1], ours[j - 1]
        change = 0 if a == b else 2 if " " in (a, b) else 1
        if costs[i][j] == costs[i - 1][j - 1] + change:
            i, j = i - 1, j - 1
            yield i, j
        elif costs[i][j] == costs[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1


def project(words: list[str], labels: list[str], heard: list[str]) -> list[str]:
    """Labels (IOB) for what was heard.

    >>> project(["at", "showtime", "now"], ["O", "B-x", "O"], ["at", "show", "time", "now"])
    ['O', 'B-x', 'I-x', 'O']
    """
    spans = [0] * len(words)
    for i, label in enumerate(labels):
        begins = not label.startswith("I-") or i == 0
        spans[i] = i if begins else spans[i - 1]
    made: list[str] = []
    last = -1
    for word in partners(words, heard):
        label = labels[word]
        if label == "O":
            made.append("O")
        else:
            made.append(("I" if spans[word] == last else "B") + label[1:])
        last = spans[word]
    return made


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="a corpus of what was heard")
    parser.add_argument("heard", type=Path, help="what hear.py has written")
    parser.add_argument("gold", type=Path, help="the folder of seq.in, seq.out and label")
    chosen = parser.parse_args()
    split = tapir.Model.load("snips-small").words
    gold = read_gold(chosen.gold)
    for line in read_heard(chosen.heard):
        sentence = gold[line["number"]]
        heard = split(line["heard"][-1])
        if heard:
            labels = project(sentence.words, sentence.labels, heard)
            intent = {"intent": sentence.intent} if sentence.intent else {}
            print(json.dumps({"tokens": heard, "labels": labels, **intent}))


if __name__ == "__main__":
    main()
