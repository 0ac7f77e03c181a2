"""Real speech: flite speaks a text, a recogniser hears it, and every partial hypothesis is labelled.

    apt-get install flite
    pip install ./python moonshine-voice==0.1.0 pocketsphinx
    python examples/speech/speech.py "play some jazz by miles davis"

Both recognisers have their weights inside (moonshine-voice in version 0.1.0).
"""

from __future__ import annotations

import argparse

from hear import RECOGNISERS, speak

from tapir.integrations import Labelled, Utterance


def listen(text: str, recogniser: str, utterance: Utterance) -> list[tuple[str, Labelled]]:
    """Every hypothesis with its labels; the last is final."""
    hypotheses = list(RECOGNISERS[recogniser](*speak(text)))
    last = len(hypotheses) - 1
    return [(heard, utterance.hear(heard, final=i == last)) for i, heard in enumerate(hypotheses)]


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="speaks a text and labels what is heard")
    parser.add_argument("text", nargs="*", default=["play some jazz by miles davis"])
    parser.add_argument("--recogniser", choices=RECOGNISERS, default="moonshine")
    parser.add_argument("--model", default="snips")
    chosen = parser.parse_args()
    utterance = Utterance(chosen.model)
    for text in chosen.text:
        for heard, labelled in listen(text, chosen.recogniser, utterance):
            print("final " if labelled.final else "so far", repr(heard), labelled.spans)


if __name__ == "__main__":
    main()
