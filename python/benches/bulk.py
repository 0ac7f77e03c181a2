"""Bulk tagging from Python against the command line, on the same sentences, in turns.

    python benches/bulk.py ../target/release/tapir

Both are told the number of threads. The time of the command line is that of the whole program, of
which its start is taken off: the time for one sentence.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import tapir


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="words a second, and their ratio")
    parser.add_argument("program", help="the built `tapir`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=4, help="how often the test split is read")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    corpus = [words for words, _ in tapir.load_corpus("snips", "test")] * chosen.repeat
    texts = [" ".join(words) for words in corpus]
    count = sum(map(len, corpus))
    model = tapir.Model.load("snips-small")
    with tempfile.TemporaryDirectory() as folder:
        long, short = Path(folder) / "long.txt", Path(folder) / "short.txt"
        long.write_text("\n".join(texts) + "\n")
        short.write_text(texts[0] + "\n")

        def command(file: Path) -> float:
            threads = ["--threads", str(chosen.threads)]
            what = ["tag", str(file), "--model", "snips-small", "--format", "conll"]
            arguments = [chosen.program, *what, *threads]
            start = time.perf_counter()
            subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
            return time.perf_counter() - start

        ratios, speeds = [], []
        for _ in range(chosen.rounds):
            theirs = command(long) - command(short)
            start = time.perf_counter()
            model.tag(texts, threads=chosen.threads, progress=False)
            ours = time.perf_counter() - start
            ratios.append(theirs / ours)
            speeds.append(count / ours)
    print(
        f"Python: {statistics.median(speeds):.0f} words a second, "
        f"{statistics.median(ratios):.2f} of the command line"
    )


if __name__ == "__main__":
    main()
