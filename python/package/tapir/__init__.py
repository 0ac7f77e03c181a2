"""Label words while they arrive, and revise only when a learned policy says so.

>>> import tapir
>>> model = tapir.Model.load("snips-small")     # or "pos", or the path of a model
>>> model.tag("play some jazz by miles davis").spans
[Span('genre', 2, 3, 'jazz'), Span('artist', 4, 6, 'miles davis')]
>>> session = model.session()                   # words that arrive one by one
>>> update = session.push("play")               # what changed: step, action, policy, edits
>>> update = session.update("play some")        # a recogniser's whole new hypothesis
>>> update = session.revoke(1)                  # it took its last word back
>>> session.finish().labels
['O']

`evaluate` and `sweep` measure a model as the TAPIR paper does. `tapir.integrations` has adapters
for voice frameworks, `tapir.ray` and `tapir.spark` label whole corpora.
"""

from ._tapir import (
    Edit,
    Error,
    Finish,
    Intent,
    Model,
    Session,
    Settled,
    Span,
    Tagged,
    Trace,
    Update,
    __version__,
    spans,
)
from .corpora import Sentence, load_corpus, sentences
from .evaluation import Evaluation, evaluate, sweep
from .training import train, write_task

__all__ = [
    "Edit",
    "Error",
    "Evaluation",
    "Finish",
    "Intent",
    "Model",
    "Sentence",
    "Session",
    "Settled",
    "Span",
    "Tagged",
    "Trace",
    "Update",
    "__version__",
    "evaluate",
    "load_corpus",
    "sentences",
    "spans",
    "sweep",
    "train",
    "write_task",
]
