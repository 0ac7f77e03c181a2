"""What else people run on every prefix: spaCy's tagger and a Hugging Face pipeline.

    python benches/others.py

Each system labels every prefix of the same sentences, on one thread, in turns. tapir reads a word
at a time; the others begin anew at every word, since they know no other way. Weights are random
where none can be had: speed does not depend on them. A system that is not installed is left out,
which is said.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tapir

System = Callable[[list[str]], None]


def ours(mode: str) -> System:
    """tapir, a word at a time."""
    session = tapir.Model.load("snips-small").session(mode=mode)  # type: ignore[arg-type]

    def read(words: list[str]) -> None:
        session.reset()
        for word in words:
            session.push(word)

    return read


def spacy_tagger() -> System:
    """spaCy's tagger at its default sizes, with random weights."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    nlp = spacy.blank("en")
    tagger = nlp.add_pipe("tagger")
    for label in tapir.Model.load("pos").labels:
        tagger.add_label(label)
    doc = Doc(nlp.vocab, ["play"], tags=["NOUN"])
    nlp.initialize(lambda: [Example(doc, doc)])

    def read(words: list[str]) -> None:
        for end in range(1, len(words) + 1):
            nlp(Doc(nlp.vocab, words[:end]))

    return read


def transformers_pipeline() -> System:
    """A token classifier of DistilBERT's sizes, with random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        DistilBertConfig,
        DistilBertForTokenClassification,
        PreTrainedTokenizerFast,
        pipeline,
    )

    torch.set_num_threads(1)
    words = sorted({word for words, _ in tapir.load_corpus("snips", "test") for word in words})
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )
    model = DistilBertForTokenClassification(DistilBertConfig(num_labels=72))
    classify = pipeline("token-classification", model=model, tokenizer=fast)

    def read(words: list[str]) -> None:
        for end in range(1, len(words) + 1):
            classify(" ".join(words[:end]))

    return read


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="words a second, and their ratio to tapir's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=40)
    chosen = parser.parse_args()
    corpus = [words for words, _ in tapir.load_corpus("snips", "test")[: chosen.sentences]]
    count = sum(map(len, corpus))
    systems: dict[str, System] = {"tapir": ours("two-pass"), "its reviser": ours("restart")}
    for name, make in (("spaCy", spacy_tagger), ("transformers", transformers_pipeline)):
        try:
            systems[name] = make()
        except ImportError as error:
            print(f"{name}: left out ({error})")
    times: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(chosen.rounds):
        for name, read in systems.items():
            start = time.perf_counter()
            for words in corpus:
                read(words)
            times[name].append(time.perf_counter() - start)
    for name, all_times in times.items():
        pairs = zip(all_times, times["tapir"], strict=True)
        ratio = statistics.median(other / own for other, own in pairs)
        speed = count / statistics.median(all_times)
        print(f"{name:14} {speed:8.0f} words a second, tapir is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
