"""Labelled sentences from what people have them in: lists, pandas frames, Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._tapir import Error

#: What columns of words and of labels are usually called, the likeliest first.
WORDS = ("words", "tokens", "word", "token", "text")
LABELS = ("labels", "tags", "ner_tags", "pos_tags", "slots", "label", "tag")
#: Columns that say which sentence a row of one word belongs to.
SENTENCE = ("sentence", "sentence_id", "sent_id", "sentence_index")

#: Words, and a label for each.
Sentence = tuple[list[str], list[str]]


def sentences(
    corpus: Any,
    *,
    words: str | None = None,
    labels: str | None = None,
    sentence: str | None = None,
) -> list[Sentence]:
    """The sentences of a corpus, each as a list of words and a list of labels.

    `corpus` is one of:

    - an iterable of pairs `(words, labels)`;
    - an iterable of mappings, or a `datasets.Dataset`, with a column of words and one of labels,
      which may be numbers of a `ClassLabel`;
    - a pandas frame with such columns: a sentence in each row, or a word in each row and a column
      that says which sentence it is in (`sentence`).

    Columns are found by their usual names, or are named by the keywords.

    >>> import tapir
    >>> tapir.sentences([(["play", "jazz"], ["O", "B-genre"])])
    [(['play', 'jazz'], ['O', 'B-genre'])]
    >>> tapir.sentences([{"tokens": ["hi"], "ner_tags": ["O"]}])
    [(['hi'], ['O'])]
    """
    if hasattr(corpus, "columns") and hasattr(corpus, "to_dict"):
        return _frame(corpus, words, labels, sentence)
    if hasattr(corpus, "column_names") and hasattr(corpus, "features"):
        return _dataset(corpus, words, labels)
    if isinstance(corpus, (str, bytes, Mapping)) or not isinstance(corpus, Iterable):
        raise TypeError(
            "expected a list of (words, labels), a pandas frame or a datasets.Dataset, "
            f"not {type(corpus).__name__}; tapir.load_corpus reads tasks"
        )
    return [_item(i, item, words, labels) for i, item in enumerate(corpus)]


def _item(i: int, item: Any, words: str | None, labels: str | None) -> Sentence:
    if isinstance(item, Mapping):
        return _pair(
            i,
            item[_column(item.keys(), words, WORDS, "words")],
            item[_column(item.keys(), labels, LABELS, "labels")],
        )
    try:
        first, second = item
    except (TypeError, ValueError):
        raise TypeError(
            f"sentence {i}: expected a pair (words, labels) or a mapping, "
            f"not {type(item).__name__}"
        ) from None
    return _pair(i, first, second)


def _pair(i: int, words: Any, labels: Any) -> Sentence:
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
    return pair[0], pair[1]


def _column(names: Iterable[Any], given: str | None, usual: tuple[str, ...], what: str) -> str:
    """The name of a column: the given one, or the first usual one."""
    names = list(names)
    if given is not None:
        if given in names:
            return given
        raise Error(f"there is no column {given!r}; there are {names}")
    for name in usual:
        if name in names:
            return name
    raise Error(f"no column of {what} among {names}; name it: {what}=...")


def _dataset(dataset: Any, words: str | None, labels: str | None) -> list[Sentence]:
    """A `datasets.Dataset`: labels may be numbers, whose names its features know."""
    words = _column(dataset.column_names, words, WORDS, "words")
    labels = _column(dataset.column_names, labels, LABELS, "labels")
    feature = dataset.features[labels]
    names = getattr(getattr(feature, "feature", feature), "names", None)

    def rows() -> Iterator[Sentence]:
        for i, row in enumerate(dataset):
            tags = row[labels]
            if names is not None:
                tags = [_name(i, tag, names) for tag in tags]
            yield _pair(i, row[words], tags)

    return list(rows())


def _name(i: int, tag: int | None, names: list[str]) -> str:
    """The name of a label of a `ClassLabel`. Words without one have -1."""
    if tag is None or not 0 <= tag < len(names):
        raise Error(
            f"sentence {i}: label {tag} is none of the {len(names)} that the dataset names; each "
            "word needs one"
        )
    return names[tag]


def _frame(
    frame: Any, words: str | None, labels: str | None, sentence: str | None
) -> list[Sentence]:
    """A pandas frame: a sentence in each row, or a word."""
    columns = list(frame.columns)
    words = _column(columns, words, WORDS, "words")
    labels = _column(columns, labels, LABELS, "labels")
    if len(frame) == 0:
        return []
    if not isinstance(frame[words].iloc[0], str):
        pairs = zip(frame[words], frame[labels], strict=True)
        return [_pair(i, first, second) for i, (first, second) in enumerate(pairs)]
    sentence = _column(columns, sentence, SENTENCE, "sentence")
    missing = frame[sentence].isna().to_numpy()
    if missing.any():
        raise Error(
            f"row {missing.argmax()}: column {sentence!r} is empty; it says for each word which "
            "sentence it is in"
        )
    groups = frame.groupby(sentence, sort=False)
    return [_pair(i, group[words], group[labels]) for i, (_, group) in enumerate(groups)]
