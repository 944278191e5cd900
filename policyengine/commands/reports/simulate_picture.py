"""Load and queue over time as an SVG picture: two panels, one above the other, one time axis.

A picture reads in light and dark: it has no background, its ink is a grey with enough contrast on white and on black,
and where the viewer prefers dark, CSS in the picture lightens it. Every moment counts: of a stretch of time that falls
on one pixel its highest and lowest values are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import methodcaller
from xml.sax.saxutils import escape

from policyengine.control_characters import escaped
from policyengine.trials.ledger import Sample, clock, mean_share, thinned
from policyengine.trials.outcome import Outcome, resources

WIDTH, LEFT, RIGHT = 920, 64, 20
PLOT = WIDTH - LEFT - RIGHT
COLOURS = ("#1f77b4", "#d9730d", "#2e9e5b", "#a24fc4")
"""Of lines, in order."""
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #6e7781; } .title { font-size: 15px; font-weight: 600; }
.grid { stroke: #8c959f; stroke-opacity: .35; } .axis { stroke: #8c959f; } .end { text-anchor: end; }
.middle { text-anchor: middle; } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) { text { fill: #b6bec8; } .line { filter: brightness(1.35); } }"""
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
    mean = {name: mean_share(outcome.ledger.samples, name, 0.0, outcome.end) for name in names}
    load = [
        _Line(f"{name} {mean[name]:.0%}", colour, methodcaller("share", name))
        for name, colour in zip(names, COLOURS, strict=False)
    ]
    queue = [_Line("pending pods", QUEUE, lambda sample: float(sample.pending))]
    stretches = thinned(outcome.ledger.samples, outcome.end, COLUMNS)
    most = max((line.value(one) for line in load for one in outcome.ledger.samples), default=0.0)
    counts = round_ticks(max((sample.pending for sample in outcome.ledger.samples), default=0))
    lower = TOP + HEIGHT + GAP
    parts = (
        *_panel(TOP, load, stretches, max(1.0, most), [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")]),
        *_panel(lower, queue, stretches, float(counts[-1]), [(float(value), f"{value:,}") for value in counts]),
        *_times(lower + HEIGHT, outcome.end),
    )
    return _document(outcome.scenario.name or "simulation", lower + HEIGHT + BOTTOM, parts)


def _panel(
    top: int,
    lines: Sequence[_Line],
    stretches: Sequence[Sequence[Sample]],
    most: float,
    ticks: Sequence[tuple[float, str]],
) -> Iterator[str]:
    """Grid, legend and lines of one panel."""
    for value, label in ticks:
        y = top + HEIGHT * (1 - value / most)
        kind = "grid" if value else "axis"
        yield f'<line class="{kind}" x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + PLOT}" y2="{y:.1f}"/>'
        yield f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{label}</text>'
    x = LEFT
    for line in lines:
        yield f'<rect x="{x}" y="{top - 19}" width="10" height="10" rx="2" fill="{line.colour}"/>'
        yield f'<text x="{x + 15}" y="{top - 10}">{escape(escaped(line.name))}</text>'
        x += 40 + 7 * len(line.name)
    for line in lines:
        points = " ".join(_points(line, stretches, top, most))
        yield f'<polyline class="line" stroke="{line.colour}" points="{points}"/>'


def _points(line: _Line, stretches: Sequence[Sequence[Sample]], top: int, most: float) -> Iterator[str]:
    for column, stretch in enumerate(stretches):
        values = [line.value(sample) for sample in stretch] or [0.0]
        x = LEFT + (column + 0.5) * PLOT / len(stretches)
        for value in dict.fromkeys((values[0], max(values), min(values), values[-1])):
            yield f"{x:.1f},{top + HEIGHT * (1 - value / most):.1f}"


def _times(y: int, end: float) -> Iterator[str]:
    """The time axis."""
    for at in time_ticks(end):
        x = LEFT + PLOT * at / end
        yield f'<line class="axis" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{y + 20}">{clock(at) if at else "0"}</text>'


def time_ticks(end: float, count: int = 10) -> range:
    """From 0 to `end`, both in seconds, in round steps, so many at most; none of no time."""
    step = next((one for one in _TICKS if end / one <= count), _TICKS[-1] * (1 + int(end / _TICKS[-1]) // count))
    return range(0, int(end) + 1 if end > 0 else 0, step)


def _document(title: str, height: int, parts: Iterable[str]) -> str:
    """A whole picture of `WIDTH` by `height` pixels."""
    title = escape(escaped(title), {'"': "&quot;"})
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="24">{title}</text>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


TICKS = 4
"""Steps of an axis, at most."""


def round_ticks(most: float) -> list[int]:
    """From 0 up to the first round number that is not below `most`, in steps of 1, 2 or 5 times a power of ten."""
    step = next(base * 10**power for power in range(12) for base in (1, 2, 5) if base * 10**power * TICKS >= most)
    return list(range(0, max(step, -(-int(most) // step) * step) + 1, step))
