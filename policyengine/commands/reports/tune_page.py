"""What `tune` found as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from policyengine.commands.reports.html_page import document, table, text_of
from policyengine.commands.reports.plan_picture import Point, Tick, plot
from policyengine.commands.reports.tune_text import head, tables

if TYPE_CHECKING:
    from policyengine.tuning.session import Found

LABEL = 9
"""Characters of a value under a plot."""


def page(found: Found, policy: str, notes: Sequence[str]) -> str:
    """The whole document. Every name in it is escaped."""
    return document(f"tune: {policy}", _lines(found, policy, notes))


def _lines(found: Found, policy: str, notes: Sequence[str]) -> Iterator[str]:
    yield f"<h1>Values for {text_of(policy)}</h1>"
    yield from (f"<p>{text_of(line)}</p>" for line in head(found))
    yield from (f'<p class="note">{text_of(line)}</p>' for line in notes)
    yield '<div class="pictures">'
    for title, svg in _pictures(found):
        yield f"<figure><figcaption>{text_of(title)}</figcaption>{svg}</figure>"
    yield "</div>"
    for title, headers, rows in tables(found):
        yield from table(title, headers, rows)


def _pictures(found: Found) -> Iterator[tuple[str, str]]:
    first = found.objectives[0]
    whole = [one for one in found.tried if one.objectives]
    if len(whole) > 1:
        points = [(float(one.number), one.objectives[0]) for one in whole]
        best, falls = [], points[0][1]
        for number, value in points:
            falls = value if first.better(value, falls) else falls
            best.append((number, falls))
        yield (
            f"{first.expression} of each candidate, the best so far, and (dashed) the policy as it is",
            _drawn(points, best, found.was[0]),
        )
    if found.front:
        pairs = [(one.objectives[0], one.objectives[1]) for one in whole]
        front = sorted((one.objectives[0], one.objectives[1]) for one in found.front)
        yield (
            f"{found.objectives[1].expression} over {first.expression}; the line joins the front",
            _drawn(pairs, front),
        )
    for name, values in found.profiles.items():
        ticks = [(at / max(1, len(values) - 1), text[:LABEL]) for at, (text, _) in enumerate(values)]
        yield (
            f"{first.expression} by {name}, the others being the best",
            _drawn(
                [(at, value) for (at, _), (_, value) in zip(ticks, values, strict=True)],
                [(at, value) for (at, _), (_, value) in zip(ticks, values, strict=True)],
                found.was[0],
                ticks,
            ),
        )


def _drawn(
    dots: Sequence[Point], line: Sequence[Point], was: float | None = None, across: Sequence[Tick] | None = None
) -> str:
    xs = [x for x, _ in dots]
    ys = [y for _, y in dots] + ([] if was is None else [was])
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)

    def placed(points: Sequence[Point]) -> list[Point]:
        return [(_share(x, left, right), _share(y, low, high)) for x, y in points]

    lines: list[tuple[str, Sequence[Point]]] = [("new", placed(line)), ("dots", placed(dots))]
    if was is not None:
        lines.insert(0, ("old", [(0.0, _share(was, low, high)), (1.0, _share(was, low, high))]))
    up = [(share, f"{low + (high - low) * share:.4g}") for share in ((0.0, 0.5, 1.0) if high > low else (0.5,))]
    ends = [(0.0, f"{left:.4g}"), (1.0, f"{right:.4g}")] if right > left else [(0.5, f"{left:.4g}")]
    return plot(lines, across if across is not None else ends, up)


def _share(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 0.5
