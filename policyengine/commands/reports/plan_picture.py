"""The pictures of a plan's page as inline SVG: both runs in one plot, the old one dashed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from math import log10
from typing import TYPE_CHECKING, Final

from policyengine.commands.reports.simulate_picture import round_ticks, time_ticks
from policyengine.plan.measures import resources, waited
from policyengine.trials.ledger import clock, thinned

if TYPE_CHECKING:
    from policyengine.plan.rerun import Rerun
    from policyengine.trials.ledger import Sample

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 230, 56, 14, 16, 34
PLOT, DEPTH = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
COLUMNS: Final = PLOT // 2
"""Stretches of time; two pixels each."""
RESOURCES: Final = 3
"""The most whose use is drawn."""
Point = tuple[float, float]
"""Both from 0 to 1, from the lower left."""
Tick = tuple[float, str]
"""Where, from 0 to 1, and what is written there."""


def pictures(old: Rerun, new: Rerun) -> Iterator[tuple[str, str]]:
    """(title, SVG) of each."""
    runs = (old, new)
    yield "Pods that wait, over time", _queue(runs)
    if any(pod.bound is not None for run in runs for pod in run.ledger.pods.values()):
        yield "How many pods were placed within which time", _waits(runs)
    nodes = [node for run in runs for node in run.ledger.nodes.values()]
    used = [name for name in resources(nodes) if any(pod.asks.get(name) for pod in old.ledger.pods.values())]
    for name in used[:RESOURCES]:
        yield f"{name} that is asked for, over time", _use(runs, name)
    for name in used[:1]:
        yield f"Nodes at the end, the fullest first: {name}", _nodes(runs, name)


def _queue(runs: Sequence[Rerun]) -> str:
    ticks = round_ticks(max((sample.pending for run in runs for sample in run.ledger.samples), default=1))
    most = float(ticks[-1])
    lines = [_over_time(run, lambda sample: sample.pending / most) for run in runs]
    return plot(_both(lines), _hours(runs), [(value / most, f"{value:,}") for value in ticks])


def _use(runs: Sequence[Rerun], name: str) -> str:
    most = max(1.0, *(sample.share(name) for run in runs for sample in run.ledger.samples))
    lines = [_over_time(run, lambda sample: sample.share(name) / most) for run in runs]
    return plot(_both(lines), _hours(runs), _percents(most))


def _over_time(run: Rerun, value: Callable[[Sample], float]) -> list[Point]:
    """Of the moments that fall on one stretch the highest and the lowest value."""
    points: list[Point] = []
    stretches = thinned(run.ledger.samples, run.end, COLUMNS)
    for column, stretch in enumerate(stretches):
        values = [value(sample) for sample in stretch] or [0.0]
        x = (column + 0.5) / len(stretches)
        points += [(x, each) for each in dict.fromkeys((values[0], max(values), min(values), values[-1]))]
    return points


def _hours(runs: Sequence[Rerun]) -> list[Tick]:
    end = max(run.end for run in runs)
    return [(at / end, clock(at) if at else "0") for at in time_ticks(end, 5)]


def _waits(runs: Sequence[Rerun]) -> str:
    """Up to each time the share of all pods that were placed; times from a second on, in logarithms."""
    waits = [sorted(waited(pod, run.end) for pod in run.ledger.pods.values() if pod.bound is not None) for run in runs]
    longest = max(10.0, *(times[-1] for times in waits if times))
    span = log10(longest)
    lines = []
    for run, times in zip(runs, waits, strict=True):
        count, points, step = len(run.ledger.pods), [(0.0, 0.0)], max(1, len(times) // COLUMNS)
        for number in [*range(step - 1, len(times), step), len(times) - 1] if times else []:
            x, before = log10(max(1.0, times[number])) / span, points[-1][1]
            points += [(x, before), (x, (number + 1) / count)]
        lines.append([*points, (1.0, points[-1][1])])
    marks = [one for one in (1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000) if one <= longest]
    return plot(_both(lines), [(log10(one) / span, clock(one)) for one in marks], _percents(1.0))


def _nodes(runs: Sequence[Rerun], name: str) -> str:
    shares = [
        sorted(
            (node.used[name] / room for node in run.ledger.nodes.values() if (room := node.room.get(name))),
            reverse=True,
        )
        for run in runs
    ]
    count, most = max(map(len, shares)) or 1, max([1.0, *(share for each in shares for share in each)])
    lines = [
        [
            point
            for at, share in enumerate(each)
            for point in ((at / count, share / most), ((at + 1) / count, share / most))
        ]
        for each in shares
    ]
    ticks = [(value / count, f"{value:,}") for value in round_ticks(count) if value <= count]
    return plot(_both(lines), ticks, _percents(most))


def _percents(most: float) -> list[Tick]:
    return [(value / most, f"{value:.0%}") for value in (0.0, 0.5, 1.0)]


def _both(lines: Sequence[Sequence[Point]]) -> list[tuple[str, Sequence[Point]]]:
    return list(zip(("old", "new"), lines, strict=True))


def plot(lines: Sequence[tuple[str, Sequence[Point]]], across: Iterable[Tick], up: Iterable[Tick]) -> str:
    """Lines with their classes, or points where the class is `dots`, in a frame with ticks."""
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">']
    for share, label in up:
        y = TOP + DEPTH * (1 - share)
        parts.append(
            f'<line class="{"grid" if share else "axis"}" x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + PLOT}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(label)}</text>')
    for share, label in across:
        x = LEFT + PLOT * share
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{TOP + DEPTH}" x2="{x:.1f}" y2="{TOP + DEPTH + 4}"/>')
        anchor = "end" if share > 0.95 else "middle"
        parts.append(f'<text class="{anchor}" x="{x:.1f}" y="{TOP + DEPTH + 20}">{escape(label)}</text>')
    for kind, points in lines:
        places = [(f"{LEFT + PLOT * x:.1f}", f"{TOP + DEPTH * (1 - y):.1f}") for x, y in points]
        if kind == "dots":
            parts += (f'<circle cx="{x}" cy="{y}" r="3"/>' for x, y in places)
        else:
            parts.append(f'<polyline class="{kind}" points="{" ".join(map(",".join, places))}"/>')
    return "".join([*parts, "</svg>"])
