#!/usr/bin/env python3
"""Makes a corpus of chunks from the trees of UD English EWT: results/chunks.py UD-EWT OUT

UD-EWT is the folder of the treebank, OUT gets a task file and the splits. Chunks of written
sentences are what CoNLL-2003 has, which is not free; these follow from the trees by rules, and stand
in for them where a recipe is tried (docs/training.md).
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NOUNS = ("NOUN", "PROPN")
#: What a part of speech is a chunk of, where nothing else is said.
KINDS = {"VERB": "VP", "AUX": "VP", "PART": "VP", "ADP": "PP", "SCONJ": "SBAR", "ADV": "ADVP"}
KINDS |= {"NOUN": "NP", "PROPN": "NP", "PRON": "NP", "DET": "NP", "NUM": "NP", "ADJ": "ADJP"}

#: The task file.
TASK = """name = "chunks"
title = "Chunks of UD English EWT"
train = "train.tsv"
valid = "dev.tsv"
test = "test.tsv"
scheme = "iob"
score = "f1"
tokenizer = "written"
max_length = 200
"""


class Word(NamedTuple):
    """A word; `head` counts from 0, and is -1 for the root."""

    text: str
    pos: str
    head: int
    relation: str

    def is_a(self, *relations: str) -> bool:
        return self.relation.split(":")[0] in relations


def sentences(file: Path) -> Iterator[list[Word]]:
    """Syntactic words."""
    for block in file.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        rows = [row for row in rows if row[0].isdigit()]
        if rows:
            yield [Word(row[1], row[3], int(row[6]) - 1, row[7]) for row in rows]


def chunk_of(words: list[Word], i: int) -> tuple[str | None, int]:
    """The kind of a word's chunk, and the word that owns it."""
    word = words[i]
    head = words[word.head] if word.head >= 0 else Word("", "X", -1, "")
    kind = KINDS.get(word.pos)
    if word.pos == "PRON" and head.pos in NOUNS and word.is_a("det", "nmod"):
        return kind, word.head
    if word.pos in ("DET", "NUM") and head.pos in (*NOUNS, "NUM") and word.is_a("det", "nummod"):
        return kind, word.head
    if word.pos == "ADJ" and word.is_a("amod") and word.head > i and head.pos in NOUNS:
        return "NP", word.head
    if word.pos == "ADV" and word.is_a("advmod") and head.pos == "ADJ" and word.head > i:
        return ("NP", head.head) if head.relation.startswith("amod") else ("ADJP", word.head)
    if word.pos == "AUX" and word.is_a("aux"):
        return kind, word.head
    if word.pos == "PART" and word.text.lower() in ("'s", "'"):
        return ("NP", head.head) if word.head >= 0 else ("NP", i)
    if word.pos == "PART":
        return kind, word.head
    if word.relation == "compound:prt" and word.pos == "ADP":
        return "PRT", i
    return kind, i


def labels(words: list[Word]) -> list[str]:
    """Chunks as IOB labels."""
    kinds, owners = map(list, zip(*(chunk_of(words, i) for i in range(len(words))), strict=True))
    for i in range(len(words)):
        # Compound nouns belong to their last one.
        last = i
        for _ in range(9):
            inside = words[last].is_a("compound", "flat") and words[last].head >= 0
            if not inside or words[last].pos not in (*NOUNS, "NUM"):
                break
            last = words[last].head
        if owners[i] == i and kinds[i] == "NP":
            owners[i] = last
    for i, owner in enumerate(owners):
        if kinds[i] == "NP" and owner >= 0:
            owners[i] = owners[owner]
    found = []
    for i, kind in enumerate(kinds):
        same = i > 0 and kinds[i - 1] == kind
        owned = i > 0 and (owners[i] in (owners[i - 1], i - 1) or owners[i - 1] == i)
        inside = same and (owned or kind == "VP")
        found.append(f"{'I' if inside else 'B'}-{kind}" if kind else "O")
    return found


def main() -> None:
    """The program."""
    treebank, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        with (out / f"{split}.tsv").open("w", encoding="utf-8") as file:
            for words in sentences(treebank / f"en_ewt-ud-{split}.conllu"):
                for word, label in zip(words, labels(words), strict=True):
                    file.write(f"{word.text}\t{label}\n")
                file.write("\n")
    (out / "chunks.toml").write_text(TASK, encoding="utf-8")


if __name__ == "__main__":
    main()
