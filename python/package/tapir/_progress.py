"""A bar for long work: tqdm's, where it is installed."""

from __future__ import annotations

import sys
from typing import Any

#: Work that ends sooner shows no bar.
DELAY = 1.0


class Bar:
    """What the compiled module calls: how much is done, and that it has ended."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, done: int) -> None:
        """Draws the bar with so much done."""
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        self._bar.close()


def start(what: str, total: int, progress: bool | None) -> Bar | None:
    """A bar for so many pieces of work.

    Without a wish (None) there is one on a terminal and in a notebook, if tqdm is installed. Who
    wishes for one (True) and lacks tqdm is told. A program without a console has none.
    """
    if progress is False or sys.stderr is None:
        return None
    if progress is None and not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        return None
    delay = 0.0 if progress else DELAY
    return Bar(tqdm(desc=what, total=total, unit="sentence", delay=delay, leave=False))
