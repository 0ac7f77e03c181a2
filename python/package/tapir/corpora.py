"""Labelled sentences from what people have them in: lists, pandas frames, Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from . import _tapir
from ._tapir import Error

#: What columns of words and of labels are usually called, the likeliest first.
WORDS = ("words", "tokens", "word", "token", "text")
LABELS = ("labels", "tags", "ner_tags", "pos_tags", "slots", "label", "tag")
#: And one of intents, which a corpus need not have.
INTENT = ("intent", "intents")
#: Columns that say which sentence a row of one word belongs to.
SENTENCE = ("sentence", "sentence_id", "sent_id", "sentence_index")


class Sentence(tuple[list[str], list[str]]):
    """Words, and a label for each: a pair, which also knows its intent if the corpus does.

    >>> import tapir
    >>> sentence = tapir.Sentence(["play", "jazz"], ["O", "B-genre"], "PlayMusic")
    >>> words, labels = sentence
    >>> labels, sentence.intent
    (['O', 'B-genre'], 'PlayMusic')
    """

    #: What the sentence is about; None if the corpus does not say it.
    intent: str | None

    def __new__(cls, words: list[str], labels: list[str], intent: str | None = None) -> Sentence:
        self = super().__new__(cls, (words, labels))
        self.intent = intent
        return self

    def __getnewargs__(self) -> tuple[list[str], list[str], str | None]:
        return (*self, self.intent)

    def __repr__(self) -> str:
        if self.intent is None:
            return super().__repr__()
        return f"Sentence({self[0]!r}, {self[1]!r}, {self.intent!r})"


def load_corpus(
    task: str, split: str = "test", data: str | PathLike[str] | None = None
) -> list[Sentence]:
    """The sentences of a task's split: "snips", which ships in the package, or a task file
    (docs/data.md). `data` is the folder of its corpus, if it is not where the task says.

    >>> import tapir
    >>> sentence = tapir.load_corpus("snips", "test")[0]
    >>> words, labels = sentence
    >>> words[:3], labels[:3], sentence.intent
    (['add', 'sabrina', 'salerno'], ['O', 'B-artist', 'I-artist'], 'AddToPlaylist')
    """
    return [Sentence(*sentence) for sentence in _tapir.load_corpus(task, split, data)]


def sentences(
    corpus: Any,
    *,
    words: str | None = None,
    labels: str | None = None,
    intent: str | None = None,
    sentence: str | None = None,
) -> list[Sentence]:
    """The sentences of a corpus, each a pair of a list of words and a list of labels.

    `corpus` is one of:

    - an iterable of pairs `(words, labels)`, or of triples with an intent;
    - an iterable of mappings, or a `datasets.Dataset`, with a column of words and one of labels,
      which may be numbers of a `ClassLabel`, and perhaps one of intents;
    - a pandas frame with such columns: a sentence in each row, or a word in each row and a column
      that says which sentence it is in (`sentence`).

    Columns are found by their usual names, or are named by the keywords.

    >>> import tapir
    >>> tapir.sentences([(["play", "jazz"], ["O", "B-genre"])])
    [(['play', 'jazz'], ['O', 'B-genre'])]
    >>> tapir.sentences([{"tokens": ["hi"], "ner_tags": ["O"], "intent": "Greet"}])
    [Sentence(['hi'], ['O'], 'Greet')]
    """
    columns = Columns(words, labels, intent, sentence)
    if hasattr(corpus, "columns") and hasattr(corpus, "to_dict"):
        return _frame(corpus, columns)
    if hasattr(corpus, "column_names") and hasattr(corpus, "features"):
        return _dataset(corpus, columns)
    if isinstance(corpus, (str, bytes, Mapping)) or not isinstance(corpus, Iterable):
        raise TypeError(
            "expected a list of (words, labels), a pandas frame or a datasets.Dataset, "
            f"not {type(corpus).__name__}; tapir.load_corpus reads tasks"
        )
    return [_item(i, item, columns) for i, item in enumerate(corpus)]


@dataclass(frozen=True)
class Columns:
    """The names of columns, where they were given."""

    words: str | None
    labels: str | None
    intent: str | None
    sentence: str | None

    def of_words(self, names: Iterable[Any]) -> str:
        """The column of words among these."""
        return _needed(names, self.words, WORDS, "words")

    def of_labels(self, names: Iterable[Any]) -> str:
        """The column of labels among these."""
        return _needed(names, self.labels, LABELS, "labels")

    def of_sentences(self, names: Iterable[Any]) -> str:
        """The column among these that says which sentence a word is in."""
        return _needed(names, self.sentence, SENTENCE, "sentence")

    def of_intents(self, names: Iterable[Any]) -> str | None:
        """The column of intents among these, if there is one."""
        return _column(names, self.intent, INTENT)


def _item(i: int, item: Any, columns: Columns) -> Sentence:
    if isinstance(item, Mapping):
        intent = columns.of_intents(item.keys())
        return _sentence(
            i,
            item[columns.of_words(item.keys())],
            item[columns.of_labels(item.keys())],
            None if intent is None else item[intent],
        )
    if isinstance(item, Sentence):
        return _sentence(i, *item, item.intent)
    try:
        words, labels, *intents = item
        [intent] = intents or [None]
    except (TypeError, ValueError):
        raise TypeError(
            f"sentence {i}: expected a pair (words, labels) or a mapping, "
            f"not {type(item).__name__}"
        ) from None
    return _sentence(i, words, labels, intent)


def _sentence(i: int, words: Any, labels: Any, intent: Any) -> Sentence:
    """Checks a sentence; numpy arrays and tuples become lists."""
    pair = []
    for what, values in (("words", words), ("labels", labels)):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"sentence {i}: {what} are a list, not {type(values).__name__}")
        texts = list(values)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"sentence {i}: {what} are texts, not {type(text).__name__}")
        pair.append([str(text) for text in texts])
    if len(pair[0]) != len(pair[1]):
        raise Error(
            f"sentence {i}: {len(pair[0])} words and {len(pair[1])} labels; "
            "a label is needed for each word"
        )
    if intent is not None and not isinstance(intent, str):
        raise TypeError(f"sentence {i}: an intent is a text, not {type(intent).__name__}")
    return Sentence(pair[0], pair[1], intent)


def _column(names: Iterable[Any], given: str | None, usual: tuple[str, ...]) -> str | None:
    """The name of a column: the given one, or the first usual one."""
    names = list(names)
    if given is not None and given not in names:
        raise Error(f"there is no column {given!r}; there are {names}")
    return given or next((name for name in usual if name in names), None)


def _needed(names: Iterable[Any], given: str | None, usual: tuple[str, ...], what: str) -> str:
    """The same of a column without which there is no corpus."""
    names = list(names)
    name = _column(names, given, usual)
    if name is None:
        raise Error(f"no column of {what} among {names}; name it: {what}=...")
    return name


def _dataset(dataset: Any, columns: Columns) -> list[Sentence]:
    """A `datasets.Dataset`: labels and intents may be numbers, whose names its features know."""
    words = columns.of_words(dataset.column_names)
    labels = columns.of_labels(dataset.column_names)
    intent = columns.of_intents(dataset.column_names)
    names = _names(dataset.features[labels])
    intents = None if intent is None else _names(dataset.features[intent])

    def rows() -> Iterator[Sentence]:
        for i, row in enumerate(dataset):
            tags, about = row[labels], None if intent is None else row[intent]
            if names is not None:
                tags = [_name(i, "label", tag, names) for tag in tags]
            if intents is not None and about is not None:
                about = _name(i, "intent", about, intents)
            yield _sentence(i, row[words], tags, about)

    return list(rows())


def _names(feature: Any) -> list[str] | None:
    """The names of a `ClassLabel`, or of a list of them."""
    names: list[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names


def _name(i: int, what: str, number: int | None, names: list[str]) -> str:
    """The name of a number of a `ClassLabel`. What has no name has -1."""
    if number is None or not 0 <= number < len(names):
        raise Error(
            f"sentence {i}: {what} {number} is none of the {len(names)} that the dataset names; "
            "each needs a name"
        )
    return names[number]


def _frame(frame: Any, columns: Columns) -> list[Sentence]:
    """A pandas frame: a sentence in each row, or a word."""
    there = list(frame.columns)
    words, labels = columns.of_words(there), columns.of_labels(there)
    intent = columns.of_intents(there)
    if len(frame) == 0:
        return []
    if not isinstance(frame[words].iloc[0], str):
        rows = zip(frame[words], frame[labels], _intents(frame, intent), strict=True)
        return [_sentence(i, *row) for i, row in enumerate(rows)]
    sentence = columns.of_sentences(there)
    missing = frame[sentence].isna().to_numpy()
    if missing.any():
        raise Error(
            f"row {missing.argmax()}: column {sentence!r} is empty; it says for each word which "
            "sentence it is in"
        )
    found = []
    for i, (_, group) in enumerate(frame.groupby(sentence, sort=False)):
        intents = set(_intents(group, intent))
        if len(intents) != 1:
            raise Error(f"sentence {i}: its words have {len(intents)} intents; it has one, or none")
        found.append(_sentence(i, group[words], group[labels], intents.pop()))
    return found


def _intents(frame: Any, column: str | None) -> list[Any]:
    """The intent of each row; None where it is missing, which pandas says in many ways."""
    if column is None:
        return [None] * len(frame)
    return [
        None if missing else intent
        for intent, missing in zip(frame[column], frame[column].isna(), strict=True)
    ]
