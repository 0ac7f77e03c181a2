"""What a word costs on its way from Python to Rust and back.

    cargo build --release -p tapir --example throughput
    python benches/boundary.py ../target/release/examples/throughput

The same sentences are read by a program of Rust and by Python, word by word and in turns. Without
revisions, so that the first pass is what the way is measured against.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import tapir

MODEL: Final = "snips-small"
MODE: Final = "first-pass"


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="the cost of the boundary, a word")
    parser.add_argument("program", help="the built example `throughput`")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1, help="of each in a round")
    chosen = parser.parse_args()
    corpus = [words for words, _ in tapir.load_corpus("snips", "test")]
    session = tapir.Model.load(MODEL).session(mode=MODE)
    push, reset, finish = session.push, session.reset, session.finish

    def ours() -> float:
        words, start = 0, time.perf_counter()
        while time.perf_counter() - start < chosen.seconds:
            for sentence in corpus:
                reset()
                for word in sentence:
                    push(word)
                finish()
                words += len(sentence)
        return 1e6 * (time.perf_counter() - start) / words

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sentences.txt"
        file.write_text("".join(" ".join(words) + "\n" for words in corpus))

        def theirs() -> float:
            command = [chosen.program, MODEL, str(file), str(chosen.seconds), MODE]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            return float(1e6 / json.loads(said.splitlines()[-1])["rate"])

        rounds = [(ours(), theirs()) for _ in range(chosen.rounds)]
    python, rust = (statistics.median(times) for times in zip(*rounds, strict=True))
    cost = statistics.median(one - other for one, other in rounds)
    print(f"microseconds a word: Python {python:.2f}, Rust {rust:.2f}, difference {cost:.2f}")


if __name__ == "__main__":
    main()
