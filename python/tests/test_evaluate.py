"""The paper's measures from Python, on corpora in the forms that people have."""

from __future__ import annotations

import base64
import pickle
import re
from typing import Any
from xml.etree import ElementTree

import pytest

import tapir

Corpus = list[tapir.Sentence]


def test_figures_agree_with_each_other(snips: tapir.Model, corpus: Corpus) -> None:
    result = tapir.evaluate(snips, corpus)
    assert result.sentences == 40
    assert result.words == sum(len(words) for words, _ in corpus)
    assert 0.8 < result.f1 <= 1 and 0 < result.revised < 0.5
    right = found = gold = 0
    for words, labels in corpus:
        session = snips.session(final_pass=False)
        session.update(words)
        ours = {(span.label, span.start, span.end) for span in session.finish().spans}
        theirs = spans(labels)
        right, found, gold = right + len(ours & theirs), found + len(ours), gold + len(theirs)
    assert result.precision == pytest.approx(right / found)
    assert result.recall == pytest.approx(right / gold)
    assert sum(row["support"] for row in result.labels) == gold
    assert "details" not in result.to_dict() and "details" not in repr(result)


def spans(labels: list[str]) -> set[tuple[str, int, int]]:
    """The spans of well-formed labels, counted here once more."""
    found, start = set(), 0
    for i, label in enumerate([*labels, "O"]):
        if i and not label.startswith("I-") and labels[i - 1] != "O":
            found.add((labels[i - 1][2:], start, i))
        if label.startswith("B-"):
            start = i
    return found


def test_modes_and_thresholds(snips: tapir.Model, corpus: Corpus) -> None:
    first = tapir.evaluate(snips, corpus, mode="first-pass")
    never = tapir.evaluate(snips, corpus, threshold=1)
    assert first.f1 == never.f1 and first.edit_overhead == never.revised == 0
    always = tapir.evaluate(snips, corpus, mode="restart")
    swept = tapir.sweep(snips, corpus, thresholds=[0, 0.25, 1])
    assert [result.threshold for result in swept] == [0, 0.25, 1]
    assert swept[0].f1 == always.f1 and swept[0].revised == 1
    assert swept[2].to_dict() == never.to_dict()
    assert len(tapir.sweep(snips, corpus[:2])) == 11


def test_pandas_takes_results(snips: tapir.Model, corpus: Corpus) -> None:
    pandas = pytest.importorskip("pandas")
    swept = tapir.sweep(snips, corpus[:10], thresholds=[0, 1])
    frame = pandas.DataFrame([result.to_dict() for result in swept]).set_index("threshold")
    assert frame.loc[1.0, "revised"] == 0 and frame["words"].nunique() == 1
    labels = pandas.DataFrame(swept[0].labels)
    assert {"label", "f1", "support"} <= set(labels.columns)
    rows = pandas.DataFrame([one.to_dict() for one in snips.tag([words for words, _ in corpus])])
    assert len(rows) == 40


def test_pandas_frames_are_corpora(snips: tapir.Model, corpus: Corpus) -> None:
    pandas = pytest.importorskip("pandas")
    expected = tapir.sentences(corpus)
    wide = pandas.DataFrame(corpus, columns=["tokens", "slots"])
    assert tapir.sentences(wide) == expected
    long = pandas.DataFrame(
        [(i, *pair) for i, one in enumerate(corpus) for pair in zip(*one, strict=True)],
        columns=["sentence", "word", "tag"],
    )
    assert tapir.sentences(long) == expected
    assert tapir.evaluate(snips, long) == tapir.evaluate(snips, corpus)
    with pytest.raises(tapir.Error, match="no column 'x'"):
        tapir.sentences(wide, words="x")


def test_datasets_are_corpora(corpus: Corpus) -> None:
    datasets = pytest.importorskip("datasets")
    names = sorted({label for _, labels in corpus for label in labels})
    rows = {
        "tokens": [words for words, _ in corpus],
        "ner_tags": [[names.index(label) for label in labels] for _, labels in corpus],
    }
    feature = getattr(datasets, "List", datasets.Sequence)
    features = datasets.Features(
        tokens=feature(datasets.Value("string")),
        ner_tags=feature(datasets.ClassLabel(names=names)),
    )
    dataset = datasets.Dataset.from_dict(rows, features=features)
    assert tapir.sentences(dataset) == tapir.sentences(corpus)


def test_intents_are_measured(snips: tapir.Model) -> None:
    corpus = tapir.load_corpus("snips", "test")[::20]
    model = tapir.Model.load("snips")
    right = 0
    for words, _ in corpus:
        session = model.session(final_pass=False)
        session.update(words)
        intent = session.finish().update.intent
        right += intent is not None and intent.label == corpus[0].intent
    asked = [(words, labels, corpus[0].intent) for words, labels in corpus]
    result = tapir.evaluate(model, asked)
    assert 0 < right < len(corpus) and result.intent == pytest.approx(right / len(corpus))
    swept = tapir.sweep(model, corpus, thresholds=[1])
    assert swept[0].intent is not None and swept[0].intent > 0.9
    assert swept[0].to_dict()["intent"] == swept[0].intent
    assert tapir.evaluate(model, [(words, labels) for words, labels in corpus]).intent is None
    assert tapir.evaluate(snips, corpus).intent is None, "a model that knows none"


def test_intents_of_all_kinds_of_corpora() -> None:
    pandas = pytest.importorskip("pandas")
    words, labels = ["play", "jazz"], ["O", "B-genre"]

    def intents(corpus: Any, **columns: str) -> list[str | None]:
        read = tapir.sentences(corpus, **columns)
        assert all(sentence == (words, labels) for sentence in read)
        assert [pickle.loads(pickle.dumps(one)).intent for one in read] == [
            one.intent for one in read
        ]
        return [sentence.intent for sentence in read]

    assert intents([(words, labels, "Play"), (words, labels)]) == ["Play", None]
    assert intents(tapir.sentences([(words, labels, "Play")])) == ["Play"]
    row = {"tokens": words, "slots": labels}
    assert intents([{**row, "intent": "Play"}, row]) == ["Play", None]
    assert intents([{**row, "about": "Play"}], intent="about") == ["Play"]
    wide = pandas.DataFrame([{**row, "intent": "Play"}, row, row])
    for missing in (None, float("nan"), pandas.NA):
        wide["intent"] = ["Play", missing, None]
        assert intents(wide) == ["Play", None, None]
    assert intents(wide.astype({"intent": "string"})) == ["Play", None, None]
    long = pandas.DataFrame(
        {"sentence": [1, 1], "word": words, "label": labels, "intent": ["Play", "Play"]}
    )
    assert intents(long) == ["Play"]
    long["intent"] = [None, None]
    assert intents(long) == [None]
    long["intent"] = ["Play", "Stop"]
    with pytest.raises(tapir.Error, match="sentence 0: its words have 2 intents"):
        intents(long)
    with pytest.raises(TypeError, match="sentence 0: an intent is a text, not int"):
        intents([(words, labels, 7)])
    with pytest.raises(tapir.Error, match="no column 'about'"):
        intents(wide, intent="about")
    assert repr(tapir.sentences([(words, labels, "Play")])) == (
        "[Sentence(['play', 'jazz'], ['O', 'B-genre'], 'Play')]"
    )


def test_intents_of_a_dataset_are_numbers_with_names() -> None:
    numbered = Numbered([0, 1], intent=1)
    assert [sentence.intent for sentence in tapir.sentences(numbered)] == ["Play"]
    with pytest.raises(tapir.Error, match="sentence 0: intent 2 is none of the 2"):
        tapir.sentences(Numbered([0, 1], intent=2))


class Numbered:
    """Stands for a `datasets.Dataset` of one sentence, which stores any number as a label."""

    column_names = ["tokens", "ner_tags"]

    def __init__(self, labels: list[int | None], intent: int | None = None) -> None:
        names = type("ClassLabel", (), {"names": ["O", "B-genre"]})()
        self.features: dict[str, Any] = {
            "tokens": None, "ner_tags": type("List", (), {"feature": names})(),
        }
        self.row: dict[str, Any] = {"tokens": ["play", "jazz"], "ner_tags": labels}
        if intent is not None:
            self.column_names = [*self.column_names, "intent"]
            self.features["intent"] = type("ClassLabel", (), {"names": ["Stop", "Play"]})()
            self.row["intent"] = intent

    def __iter__(self) -> Any:
        return iter([self.row])


def test_a_word_without_a_label_is_not_given_the_last_one() -> None:
    assert tapir.sentences(Numbered([0, 1])) == [(["play", "jazz"], ["O", "B-genre"])]
    bad: list[list[int | None]] = [[0, -1], [0, 2], [0, None]]
    for labels in bad:
        with pytest.raises(tapir.Error, match=f"sentence 0: label {labels[1]} is none of the 2"):
            tapir.sentences(Numbered(labels))


def test_a_word_without_a_sentence_is_not_lost() -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"word": ["play", "some", "jazz"], "tag": ["O", "O", "B-genre"]}
    for ids in ([1, None, 2], ["a", None, "b"], [1.0, float("nan"), 2.0]):
        with pytest.raises(tapir.Error, match="row 1: column 'sentence' is empty"):
            tapir.sentences(pandas.DataFrame({"sentence": ids, **rows}))
    # Whatever the frame's own index is.
    frame = pandas.DataFrame({"sentence": [1, 1, None], **rows}, index=[7, 7, 7])
    with pytest.raises(tapir.Error, match="row 2"):
        tapir.sentences(frame)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ([], "empty"),
        ([(["a", "b"], ["O"])], "2 words and 1 labels"),
        ([{"tokens": ["a"]}], "no column of labels"),
        ([(["a"], ["O"]), (["b", ""], ["O", "O"])], "sentence 1: an empty word"),
        ([(["a"], ["O"]), (["a"] * 300, ["O"] * 300)], "sentence 1 has 300 words.* at most 200"),
        ([(["a"], ["O"]), (["a"], [])], "sentence 1: 1 words and 0 labels"),
    ],
)
def test_faults_are_named(snips: tapir.Model, corpus: Any, message: str) -> None:
    with pytest.raises(tapir.Error, match=message):
        tapir.evaluate(snips, corpus)


@pytest.mark.parametrize("corpus", [None, 1, "snips", [1], [("a b", "O O")], [([1], ["O"])]])
def test_wrong_types(snips: tapir.Model, corpus: Any) -> None:
    with pytest.raises(TypeError):
        tapir.evaluate(snips, corpus)


def test_a_fault_late_in_a_corpus_is_counted_from_its_start(
    snips: tapir.Model, corpus: Corpus
) -> None:
    many = (corpus * 10)[:399] + [(["play", ""], ["O", "O"])]
    with pytest.raises(tapir.Error, match="sentence 399: an empty word"):
        tapir.evaluate(snips, many)


def test_tasks(snips: tapir.Model) -> None:
    assert len(tapir.load_corpus("snips")) == 700
    with pytest.raises(tapir.Error, match="train"):
        tapir.load_corpus("snips", "dev")
    with pytest.raises(tapir.Error):
        tapir.load_corpus("no-such-task")


def test_a_trace_shows_itself(snips: tapir.Model) -> None:
    trace = snips.trace("add step to me <b>")
    html = trace._repr_html_()
    assert html.startswith("<img ") and "data:image/svg+xml;base64," in html
    assert trace.to_svg().startswith("<svg ")
    assert "<!doctype html>" in trace.to_html()
    assert trace.edits == 1 and "◆I-entity_name" in str(trace)
    assert repr(trace) == "<tapir.Trace of \"add step to me b\": 1 edits; print it>"
    assert trace == snips.trace(snips.words("add step to me <b>"))
    with pytest.raises(tapir.Error, match="no words"):
        snips.trace(" ")


def test_a_figure_of_any_word_is_well_formed(snips: tapir.Model) -> None:
    trace = snips.trace(["play", "<b>", "&amp;", "a\0b\x01\x0b\x0c\x1b\uffff", "\x7f\t\x85"])
    assert "<b>" not in trace.to_svg() and "<b></" not in trace.to_html()
    image = re.search('base64,([^"]+)"', trace._repr_html_())
    assert image is not None
    for svg in (trace.to_svg(), base64.b64decode(image[1]).decode()):
        shown = [text.text for text in ElementTree.fromstring(svg).iter() if text.text]
        for word in ("<b>", "&amp;", "a\ufffdb" + 5 * "\ufffd"):
            assert word in shown
