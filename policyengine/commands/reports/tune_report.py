"""What `tune` found: as tables, as plain data, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from policyengine.commands.reports.html_page import document, figures, table, text_of
from policyengine.commands.reports.plan_picture import Point, Tick, plot

if TYPE_CHECKING:
    from policyengine.plan.tables import Titled
    from policyengine.tuning.session import Found


FRONT: Final = 20
"""Candidates of the front that are shown."""
Row = Sequence[str]


def head(found: Found) -> Iterator[str]:
    """What was asked, and the answer in a sentence."""
    stopped = sum(not one.objectives for one in found.tried)
    yield f"{'; '.join(map(str, found.objectives))}: {len(found.tried)} candidates, {stopped} stopped early"
    if not found.is_better:
        yield "nothing better than the policy as it is was found"
    gain = found.gain
    if gain is not None:
        surely = "" if gain.excludes_zero else ", which may be chance"
        yield (
            f"held out ({len(found.held_out)}): {found.objectives[0].expression} changes by {gain.mean:+.6g} "
            f"(95 %: {gain.low:+.6g} to {gain.high:+.6g}{surely})"
        )
    broken = sum(one.broken for one in found.held_out)
    if broken:
        yield f"held out: constraints are not kept {broken} times"


def tables(found: Found) -> Iterator[Titled]:
    """The values, the objectives, and all else."""
    now = {one.name: one.now for one in found.dimensions}
    part = found.importance
    rows: list[Row] = [
        (name, now[name], value, f"{part[name]:.0%}" if name in part else "")
        for name, value in found.best.values.items()
    ]
    yield "Values", ("", "now", "found", "importance"), rows
    yield "Objectives", ("", "now", "found", "held out, now", "held out, found"), list(_objectives(found))
    if found.front:
        heads = (*(one.expression for one in found.objectives), *now)
        front = [(*map(_number, one.objectives), *one.values.values()) for one in found.front[:FRONT]]
        yield f"Nobody is better in all ({len(found.front)})", heads, front
    for name, values in found.profiles.items():
        yield f"{name} alone", ("value", found.objectives[0].expression), [(text, _number(one)) for text, one in values]
    if found.held_out:
        held = [(one.workload, _number(one.was[0]), _number(one.is_now[0])) for one in found.held_out]
        yield "Held out", ("", "now", "found"), held


def _objectives(found: Found) -> Iterator[Row]:
    for at, objective in enumerate(found.objectives):
        held = [fmean(side) for side in zip(*((one.was[at], one.is_now[at]) for one in found.held_out), strict=True)]
        trained = (found.was[at], found.best.objectives[at])
        yield (objective.expression, *map(_number, (*trained, *held)), *([""] * (2 - len(held))))


def _number(value: float) -> str:
    return f"{value:,.6g}"


def plain(found: Found) -> dict[str, Any]:
    """As plain data."""
    gain = found.gain
    return {
        "objectives": list(map(str, found.objectives)),
        "values": dict(found.best.values),
        "now": {one.name: one.now for one in found.dimensions},
        "better": found.is_better,
        "trained": {"now": list(found.was), "found": list(found.best.objectives)},
        "heldOut": [
            {"workload": one.workload, "now": list(one.was), "found": list(one.is_now), "broken": one.broken}
            for one in found.held_out
        ],
        "gain": gain and {"mean": gain.mean, "low": gain.low, "high": gain.high},
        "importance": found.importance,
        "profiles": {
            name: [{"value": text, "objective": one} for text, one in values] for name, values in found.profiles.items()
        },
        "front": [{"values": dict(one.values), "objectives": list(one.objectives)} for one in found.front],
        "candidates": [
            {"number": at, "values": dict(one.values), "objectives": list(one.objectives), "broken": one.broken}
            for at, one in enumerate(found.tried)
        ],
    }


LABEL = 9
"""Characters of a value under a plot."""


def page(found: Found, policy: str, notes: Sequence[str]) -> str:
    """The whole document. Every name in it is escaped."""
    return document(f"tune: {policy}", _lines(found, policy, notes))


def _lines(found: Found, policy: str, notes: Sequence[str]) -> Iterator[str]:
    yield f"<h1>Values for {text_of(policy)}</h1>"
    yield from (f"<p>{text_of(line)}</p>" for line in head(found))
    yield from (f'<p class="note">{text_of(line)}</p>' for line in notes)
    yield from figures(_pictures(found))
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
        points = [(at, value) for (at, _), (_, value) in zip(ticks, values, strict=True)]
        yield f"{first.expression} by {name}, the others being the best", _drawn(points, points, found.was[0], ticks)


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
