"""What a word costs on its way from Python to Rust and back.

    python benches/boundary.py

The same sentences are read twice in turns: word by word (`push`), and each by one call (`update`),
in which Rust does the same work and Python is met once a sentence. The difference by word is the
boundary's, and what Rust itself needs to say what changed. Without revisions, so that the first
pass is what it is measured against.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import tapir


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="the cost of the boundary, a word")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--sentences", type=int, default=200)
    chosen = parser.parse_args()
    corpus = [words for words, _ in tapir.load_corpus("snips", "test")[: chosen.sentences]]
    count = sum(map(len, corpus))
    session = tapir.Model.load("snips-small").session(mode="first-pass")
    push, update, reset = session.push, session.update, session.reset

    def by_word() -> None:
        for words in corpus:
            reset()
            for word in words:
                push(word)

    def by_sentence() -> None:
        for words in corpus:
            reset()
            update(words)

    by_word()
    by_sentence()
    rounds = [(seconds(by_word), seconds(by_sentence)) for _ in range(chosen.rounds)]
    word, sentence = (1e6 * statistics.median(times) / count for times in zip(*rounds, strict=True))
    cost = 1e6 * statistics.median(one - other for one, other in rounds) / count
    print(f"push: {word:.2f} microseconds a word; update: {sentence:.2f}; difference: {cost:.2f}")


if __name__ == "__main__":
    main()
