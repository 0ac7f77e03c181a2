"""Real speech: flite speaks a text, a recogniser hears it, and every partial hypothesis is labelled.

    apt-get install flite
    pip install ./python moonshine-voice==0.1.0 pocketsphinx
    python examples/speech/speech.py "play some jazz by miles davis"

Both recognisers have their weights inside (moonshine-voice in version 0.1.0).
"""

from __future__ import annotations

import argparse
import array
import subprocess
import tempfile
import wave
from collections.abc import Callable, Iterator
from pathlib import Path

from tapir.integrations import Labelled, Utterance

#: Seconds of speech between two hypotheses.
STEP = 0.4


def speak(text: str) -> tuple[bytes, int]:
    """Speaks a text; gives samples of 16 bits, and how many there are a second."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", str(file)], check=True)
        with wave.open(str(file)) as sound:
            return sound.readframes(sound.getnframes()), sound.getframerate()


def moonshine(samples: bytes, rate: int) -> Iterator[str]:
    """Moonshine hears all speech so far anew at every step."""
    from moonshine_voice import ModelArch, Transcriber
    from moonshine_voice.utils import get_model_path

    sound = [sample / 32768 for sample in array.array("h", samples)]
    with Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY) as transcriber:
        step = int(STEP * rate)
        for end in [*range(2 * step, len(sound), step), len(sound)]:
            lines = transcriber.transcribe_without_streaming(sound[:end], rate).lines
            yield " ".join(line.text for line in lines)


def pocketsphinx(samples: bytes, rate: int) -> Iterator[str]:
    """PocketSphinx hears speech as it comes."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=rate, loglevel="FATAL")
    decoder.start_utt()
    step = 2 * int(STEP * rate)
    for start in range(0, len(samples), step):
        decoder.process_raw(samples[start : start + step])
        heard = decoder.hyp()
        yield heard.hypstr if heard else ""
    decoder.end_utt()
    heard = decoder.hyp()
    yield heard.hypstr if heard else ""


RECOGNISERS: dict[str, Callable[[bytes, int], Iterator[str]]] = {
    "moonshine": moonshine,
    "pocketsphinx": pocketsphinx,
}


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
