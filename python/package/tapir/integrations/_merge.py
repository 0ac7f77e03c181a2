"""Two updates as one: a last hypothesis is read, and then its utterance is finished."""

from __future__ import annotations

from .._tapir import Edit, Intent, Settled, Update


def merge(labels: list[str], first: Update, then: Update) -> Update:
    """The change that two updates make to these labels, one after the other."""
    # The last word is about the label that a position has in the end.
    last = {edit.position: edit for edit in (*first.edits, *then.edits)}
    edits = []
    for position in sorted(last):
        edit = last[position]
        old = labels[position] if position < len(labels) else None
        if position < then.length and edit.label != old:
            edits.append(Edit(position, edit.label, old, edit.probability, edit.stability))
    # Finishing chooses something only if it revises.
    chosen = then if then.action else first
    return Update(
        then.step,
        chosen.action,
        chosen.policy,
        edits,
        then.length,
        then.committed,
        _intent(first, then),
        _settled(first, then),
    )


def _intent(first: Update, then: Update) -> Intent | None:
    """The intent in the end, which either may have changed."""
    intent = then.intent
    if intent is None or first.intent is None or not first.intent.changed:
        return intent
    return Intent(intent.label, intent.probability, True, intent.stability, intent.in_domain)


def _settled(first: Update, then: Update) -> Settled | None:
    """What has settled in either: each says it once."""
    if first.settled is None:
        return then.settled
    # What was changed again has not settled before.
    again = {edit.position for edit in then.edits}
    words = set(first.settled.words) - again
    spans = [
        span
        for span in first.settled.spans
        # The words around a span decide where it begins and ends.
        if again.isdisjoint(range(span.start - 1, span.end + 1))
    ]
    intent = first.settled.intent and not (then.intent and then.intent.changed)
    if then.settled is not None:
        words.update(then.settled.words)
        spans += then.settled.spans
        intent = intent or then.settled.intent
    if not (words or spans or intent):
        return None
    return Settled(sorted(words), sorted(spans, key=lambda span: span.start), intent)
