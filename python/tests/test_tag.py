"""Whole sentences: the labels of the command line, on all cores, without the GIL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import tapir


def test_kinds_of_input(snips: tapir.Model) -> None:
    one = snips.tag("Play some jazz!")
    assert isinstance(one, tapir.Tagged)
    assert one.words == ["play", "some", "jazz"] and one.offsets == [(0, 4), (5, 9), (10, 14)]
    many = snips.tag(["Play some jazz!", ["play", "some", "jazz"], ""])
    assert many[0] == one
    assert many[1].labels == one.labels and many[1].offsets is None
    assert len(many[2]) == 0 and many[2].spans == []
    assert snips.tag([]) == []
    assert snips.tag(iter(["play some jazz"]))[0].labels == one.labels
    assert snips.tag(("play some jazz",))[0] == snips.tag("play some jazz")
    assert one[0] == ("play", "O") and one[-1] == ("jazz", "B-genre")
    with pytest.raises(IndexError):
        one[3]


def test_one_sentence_of_words(snips: tapir.Model) -> None:
    words = ["play", "some", "jazz"]
    tagged = snips.tag(words, words=True)
    assert tagged == snips.tag([words])[0] and tagged.labels == ["O", "O", "B-genre"]
    assert snips.tag(iter(words), words=True, threshold=1) == snips.tag([words], threshold=1)[0]
    assert len(snips.tag([], words=True)) == 0
    assert [one.words for one in snips.tag(words)] == [[word] for word in words]
    for wrong in ("play some jazz", [words], None):
        with pytest.raises(TypeError):
            snips.tag(wrong, words=True)  # type: ignore[call-overload]
    with pytest.raises(tapir.Error, match="threshold"):
        snips.tag(words, words=True, threshold=2)


def test_it_is_what_a_session_gives(
    snips: tapir.Model, corpus: list[tapir.Sentence]
) -> None:
    tagged = snips.tag([words for words, _ in corpus])
    for (words, _), one in zip(corpus, tagged, strict=True):
        session = snips.session()
        for word in words:
            session.push(word)
        end = session.finish()
        assert (one.words, one.labels) == (words, end.labels)
        assert one.probabilities.tolist() == session.probabilities.tolist()
        spans = [(span.label, span.start, span.end) for span in end.spans]
        assert [(span.label, span.start, span.end) for span in one.spans] == spans


def test_threads_change_nothing(
    snips: tapir.Model, corpus: list[tapir.Sentence]
) -> None:
    texts = [" ".join(words) for words, _ in corpus]
    assert snips.tag(texts, threads=1) == snips.tag(texts, threads=7)


def test_options_reach_the_sessions(snips: tapir.Model) -> None:
    text = "add step to me"
    first = snips.tag(text, mode="first-pass")
    assert first.labels == snips.tag(text, threshold=1, final_pass=False).labels
    assert first.labels != snips.tag(text).labels


def test_spans_of_a_corpus(snips: tapir.Model) -> None:
    """What a model calls spans is what its labels say."""
    for words, labels in tapir.load_corpus("snips", "test")[:30]:
        tagged = snips.tag([words])[0]
        assert tapir.spans(tagged.words, tagged.labels) == tagged.spans
        assert sum(map(len, tapir.spans(words, labels))) == sum(one != "O" for one in labels)
    with pytest.raises(tapir.Error, match="1 labels for 2 words"):
        tapir.spans(["miles", "davis"], ["B-artist"])


def test_parts_of_speech(pos: tapir.Model) -> None:
    tagged = pos.tag("The cat didn't sleep.")
    assert tagged.words == ["The", "cat", "did", "n't", "sleep", "."]
    assert tagged.labels == ["DET", "NOUN", "AUX", "PART", "VERB", "PUNCT"]


def test_python_goes_on_while_it_computes(
    snips: tapir.Model, corpus: list[tapir.Sentence]
) -> None:
    """The other thread counts during the call, which it could not without the GIL."""
    words = [words for words, _ in corpus] * 4
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        snips.tag(words, threads=1)
        during = counted[0] - before
    finally:
        stop.set()
        thread.join()
    assert during > 20


def test_progress_is_shown(snips: tapir.Model, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    snips.tag(["play some jazz"] * 300, progress=True)
    assert "labelling" in capfd.readouterr().err
    snips.tag(["play some jazz"] * 10)
    assert capfd.readouterr().err == "", "no bar where nobody looks"


@pytest.mark.parametrize("progress", [None, True])
def test_a_program_without_a_console_shows_no_progress(
    snips: tapir.Model, monkeypatch: pytest.MonkeyPatch, progress: bool | None
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert len(snips.tag(["play some jazz"] * 3, progress=progress)) == 3


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as Unix does")
@pytest.mark.parametrize(
    "work",
    [
        "model.tag(['play some jazz by miles davis'] * 10_000_000)",
        "model.tag(' '.join(['play some jazz by miles davis'] * 1600), threshold=0)",
        "tapir.evaluate(model, tapir.load_corpus('snips', 'train'))",
    ],
    ids=["many", "one", "evaluate"],
)
def test_ctrl_c_stops(work: str) -> None:
    program = f"""
        import signal, tapir
        # A process in the background ignores it, and so would we.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        model = tapir.Model.load("snips-small")
        print("ready", flush=True)
        try:
            {work}
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    # Not in the folder of the package, whose source would be imported instead of what is installed.
    folder = Path(__file__).parent
    arguments = [sys.executable, "-c", textwrap.dedent(program)]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    finally:
        child.kill()
    assert out == "stopped\n" and child.returncode == 0
