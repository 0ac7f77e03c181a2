"""A model's scores and incremental metrics, as the TAPIR paper has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from . import _tapir
from .corpora import sentences


@dataclass(frozen=True)
class Evaluation:
    """What a model did with a corpus. Scores and shares lie between 0 and 1.

    A list of evaluations makes a pandas frame: `pandas.DataFrame(e.to_dict() for e in sweep)`.
    """

    #: The threshold of the policy.
    threshold: float
    #: Which passes ran: "two-pass", "restart" or "first-pass".
    mode: str
    #: How many sentences, and words in them.
    sentences: int
    words: int
    #: Of spans, or of words where labels make none.
    f1: float
    precision: float
    recall: float
    #: The share of words with the right label.
    accuracy: float
    #: The share of sentences with only right labels.
    exact: float
    #: The share of edits that were not needed (EO): lower is better.
    edit_overhead: float
    #: How long labels take to settle (CT): lower is better.
    correction_time: float
    #: The share of outputs that are a prefix of the final one (RC): higher is better.
    relative_correctness: float
    #: The share of words at which the policy revised.
    revised: float
    #: The share of sentences with the right intent in the end; None if the model knows no intents,
    #: or the corpus has none.
    intent: float | None
    #: Everything that was measured, as `tapir eval --json` names it.
    details: dict[str, Any] = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """The figures by name, without the details: a row of a data frame."""
        return {
            column.name: getattr(self, column.name)
            for column in fields(self)
            if column.name != "details"
        }

    @property
    def labels(self) -> list[dict[str, Any]]:
        """Precision, recall, F1 and support of each kind of label, for a data frame."""
        scores: dict[str, dict[str, Any]] = self.details["scores"]["labels"]
        return [{"label": label, **score} for label, score in scores.items()]

    @classmethod
    def _of(cls, details: dict[str, Any]) -> Evaluation:
        scores, metrics = details["scores"], details["incremental"]
        actions = details["actions"]
        steps = actions["write"] + actions["revise"]
        return cls(
            threshold=round(details["setting"]["threshold"], 6),
            mode=details["setting"]["mode"],
            sentences=details["sentences"],
            words=details["words"],
            f1=scores["micro"]["f1"],
            precision=scores["micro"]["precision"],
            recall=scores["micro"]["recall"],
            accuracy=scores["accuracy"],
            exact=scores["exact"],
            edit_overhead=metrics["edit_overhead"]["mean"],
            correction_time=metrics["correction_time"]["mean"],
            relative_correctness=metrics["relative_correctness"]["mean"],
            revised=actions["revise"] / steps if steps else 0.0,
            intent=(details.get("intents") or {}).get("accuracy"),
            details=details,
        )


def _triples(corpus: Any, **columns: str | None) -> list[tuple[list[str], list[str], str | None]]:
    """A corpus as the compiled module takes it."""
    return [(*sentence, sentence.intent) for sentence in sentences(corpus, **columns)]


def evaluate(
    model: _tapir.Model,
    corpus: Any,
    *,
    threshold: float | None = None,
    mode: str | None = None,
    words: str | None = None,
    labels: str | None = None,
    intent: str | None = None,
    sentence: str | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Measures a model on labelled sentences, word by word, on all cores.

    As in the paper, no revision is forced at the end: the policy's last word stands. `corpus` and
    the names of its columns are those of `tapir.sentences`. Ctrl-C stops it.

    >>> import tapir
    >>> model = tapir.Model.load("snips-small")
    >>> corpus = [("play some jazz".split(), ["O", "O", "B-genre"])]
    >>> result = tapir.evaluate(model, corpus)
    >>> result.f1, result.words
    (1.0, 3)
    """
    corpus = _triples(corpus, words=words, labels=labels, intent=intent, sentence=sentence)
    return Evaluation._of(json.loads(_tapir.evaluate(model, corpus, threshold, mode, progress)))


def sweep(
    model: _tapir.Model,
    corpus: Any,
    *,
    thresholds: Iterable[float] | None = None,
    words: str | None = None,
    labels: str | None = None,
    intent: str | None = None,
    sentence: str | None = None,
    progress: bool | None = None,
) -> list[Evaluation]:
    """Measures every threshold in one pass over the corpus; by default 0 to 1 in steps of 0.1.

    >>> import tapir
    >>> model = tapir.Model.load("snips-small")
    >>> corpus = [("play some jazz".split(), ["O", "O", "B-genre"])]
    >>> [result.revised for result in tapir.sweep(model, corpus, thresholds=[0, 1])]
    [1.0, 0.0]
    """
    corpus = _triples(corpus, words=words, labels=labels, intent=intent, sentence=sentence)
    given = None if thresholds is None else [float(value) for value in thresholds]
    return [Evaluation._of(one) for one in json.loads(_tapir.sweep(model, corpus, given, progress))]
