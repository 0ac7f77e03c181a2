"""What recognisers hear of a spoken text: flite speaks it, and every hypothesis is kept.

    apt-get install flite
    pip install moonshine-voice==0.1.0 pocketsphinx
    python examples/speech/hear.py sentences.txt heard.jsonl --every 3 --most 200

Both recognisers have their weights inside (moonshine-voice in version 0.1.0). `heard.jsonl` has a
line for each sentence: its number, its text, the voice, the recogniser, and the hypotheses, the
last of them final. What this recogniser has heard already is not spoken again.
"""

from __future__ import annotations

import argparse
import array
import functools
import json
import subprocess
import tempfile
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Seconds of speech between two hypotheses.
STEP = 0.4


def speak(text: str, voice: str = "slt") -> tuple[bytes, int]:
    """Speaks a text; gives samples of 16 bits, and how many there are a second."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(file)], check=True)
        with wave.open(str(file)) as sound:
            return sound.readframes(sound.getnframes()), sound.getframerate()


@functools.cache
def transcriber() -> Any:
    """Moonshine, loaded once."""
    from moonshine_voice import ModelArch, Transcriber
    from moonshine_voice.utils import get_model_path

    return Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)


def moonshine(samples: bytes, rate: int, partial: bool = True) -> Iterator[str]:
    """Moonshine hears all speech so far anew at every step."""
    sound = [sample / 32768 for sample in array.array("h", samples)]
    step = int(STEP * rate)
    ends = range(2 * step, len(sound), step) if partial else []
    for end in [*ends, len(sound)]:
        lines = transcriber().transcribe_without_streaming(sound[:end], rate).lines
        yield " ".join(line.text for line in lines)


def pocketsphinx(samples: bytes, rate: int, partial: bool = True) -> Iterator[str]:
    """PocketSphinx hears speech as it comes."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=rate, loglevel="FATAL")
    decoder.start_utt()
    step = 2 * int(STEP * rate)
    for start in range(0, len(samples), step):
        decoder.process_raw(samples[start : start + step])
        heard = decoder.hyp()
        if partial:
            yield heard.hypstr if heard else ""
    decoder.end_utt()
    heard = decoder.hyp()
    yield heard.hypstr if heard else ""


RECOGNISERS: dict[str, Callable[..., Iterator[str]]] = {
    "moonshine": moonshine,
    "pocketsphinx": pocketsphinx,
}


def heard_before(file: Path, recogniser: str) -> set[int]:
    """The numbers of the sentences that this recogniser has heard. A line that was cut off when
    the program was stopped is taken away."""
    if not file.exists():
        return set()
    text = file.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole)
    lines = map(json.loads, whole.splitlines())
    return {line["number"] for line in lines if line["recogniser"] == recogniser}


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="speaks sentences and keeps what is heard")
    parser.add_argument("sentences", type=Path, help="a sentence per line")
    parser.add_argument("heard", type=Path, help="where to write JSON Lines")
    parser.add_argument("--recogniser", choices=RECOGNISERS, default="moonshine")
    parser.add_argument("--voices", nargs="+", default=["slt"], help="taken in turns")
    parser.add_argument("--every", type=int, default=1, help="take one sentence of so many")
    parser.add_argument("--most", type=int, help="end after so many sentences")
    parser.add_argument("--final", action="store_true", help="keep final hypotheses alone")
    chosen = parser.parse_args()
    sentences = list(enumerate(chosen.sentences.read_text().splitlines()))
    taken = sentences[:: chosen.every][: chosen.most]
    done = heard_before(chosen.heard, chosen.recogniser)
    with chosen.heard.open("a") as file:
        for turn, (number, text) in enumerate(taken):
            if number in done:
                continue
            voice = chosen.voices[turn % len(chosen.voices)]
            sound = speak(text, voice)
            heard = list(RECOGNISERS[chosen.recogniser](*sound, partial=not chosen.final))
            line = {
                "number": number,
                "text": text,
                "voice": voice,
                "recogniser": chosen.recogniser,
                "heard": heard,
            }
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
