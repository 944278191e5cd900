"""Load and queue over time as an SVG picture: two panels, one above the other, one time axis.

Every moment counts: of a stretch of time that falls on one pixel its highest and lowest values are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from policyengine.simulator.drawing import COLOURS, LEFT, PLOT, document, legend, polyline, round_ticks, rule, tick
from policyengine.trials.figures import clock, mean_share, thinned
from policyengine.trials.ledger import Sample
from policyengine.trials.outcome import Outcome, resources

TOP, HEIGHT, GAP, BOTTOM = 64, 150, 44, 34
COLUMNS = PLOT // 2
"""Stretches of time; two pixels each."""
QUEUE = "#d1495b"
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True, slots=True)
class _Line:
    """Something over time."""

    name: str
    colour: str
    value: Callable[[Sample], float]


def svg(outcome: Outcome) -> str:
    """The picture of a run; resources beyond the colours are left out."""
    names = resources(outcome.ledger)[: len(COLOURS)]
    load = [_Line(_label(outcome, name), colour, _share(name)) for name, colour in zip(names, COLOURS, strict=False)]
    queue = [_Line("pending pods", QUEUE, lambda sample: float(sample.pending))]
    stretches = thinned(outcome.ledger.samples, outcome.end, COLUMNS)
    most = max((line.value(one) for line in load for one in outcome.ledger.samples), default=0.0)
    lower = TOP + HEIGHT + GAP
    parts = (
        *_panel(TOP, load, stretches, max(1.0, most), [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")]),
        *_panel(lower, queue, stretches, *_counts(outcome)),
        *_times(lower + HEIGHT, outcome.end),
    )
    return document(outcome.scenario.name or "simulation", lower + HEIGHT + BOTTOM, parts)


def _share(name: str) -> Callable[[Sample], float]:
    return lambda sample: sample.share(name)


def _label(outcome: Outcome, name: str) -> str:
    return f"{name} {mean_share(outcome.ledger.samples, name, 0.0, outcome.end):.0%}"


def _counts(outcome: Outcome) -> tuple[float, list[tuple[float, str]]]:
    """The highest value of the queue's axis, and its ticks: up to five round numbers."""
    most = max((sample.pending for sample in outcome.ledger.samples), default=0)
    ticks = round_ticks(most)
    return float(ticks[-1]), [(float(value), f"{value:,}") for value in ticks]


def _panel(
    top: int,
    lines: Sequence[_Line],
    stretches: Sequence[Sequence[Sample]],
    most: float,
    ticks: Sequence[tuple[float, str]],
) -> Iterator[str]:
    """Grid, legend and lines of one panel."""
    for value, label in ticks:
        yield from rule(top, HEIGHT, value / most, label)
    yield from legend(top, ((line.name, line.colour) for line in lines))
    for line in lines:
        yield polyline(line.colour, " ".join(_points(line, stretches, top, most)))


def _points(line: _Line, stretches: Sequence[Sequence[Sample]], top: int, most: float) -> Iterator[str]:
    for column, stretch in enumerate(stretches):
        values = [line.value(sample) for sample in stretch] or [0.0]
        x = LEFT + (column + 0.5) * PLOT / len(stretches)
        for value in dict.fromkeys((values[0], max(values), min(values), values[-1])):
            yield f"{x:.1f},{top + HEIGHT * (1 - value / most):.1f}"


def _times(y: int, end: float) -> Iterator[str]:
    """The time axis."""
    step = next((one for one in _TICKS if end / one <= 10), _TICKS[-1] * (1 + int(end / _TICKS[-1]) // 10))
    at = 0
    while at <= end and end > 0:
        yield from tick(LEFT + PLOT * at / end, y, clock(at) if at else "0")
        at += step
