"""Pictures of measurements: throughput over a run and the spread of its seconds; cost against the size of a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from benchmarks.peers import peer_of
from benchmarks.records import Record, middle_runs, title
from benchmarks.scale import Point, ScaleFigures, from_json
from policyengine.simulator.drawing import COLOURS, LEFT, PLOT, Panel, Tick, document, legend, round_ticks

TOP, HEIGHT, GAP, BOTTOM = 92, 190, 96, 56
BETWEEN: Final = 76
HALF: Final = (PLOT - BETWEEN - 14) // 2
"""Width of one of two panels side by side."""
PEER_COLOUR: Final = "#8c959f"

Values = Sequence[tuple[float, float]]
Cost = Callable[[Point], float]
KINDS: Final[Sequence[tuple[str, str, Cost]]] = (
    ("different pods", COLOURS[0], lambda point: point.different_us),
    ("identical pods", COLOURS[1], lambda point: point.identical_us),
)


class NoPicture(ValueError):
    """There is nothing to draw of this measurement; the message says what there would be."""


def svg(record: Record) -> str:
    """The picture of an end-to-end measurement, of `limit`, or of `scale`. Raises `NoPicture`."""
    if record.what == "scale":
        return _scale(from_json(record.figures))
    if record.what in ("end-to-end", "limit"):
        return _end_to_end(record)
    raise NoPicture(f"there is no picture of `{record.what}`: a workload, `limit` and `scale` have one")


def _end_to_end(record: Record) -> str:
    runs = middle_runs(record)
    first = next(iter(runs.values()))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(runs)}
    series = {name: [float(count) for count in _full(run["samples"]["series"])] for name, run in runs.items()}
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    recorded = [peer.binds_per_second] if peer else []
    most = max([1.0, *recorded, *(count for each in series.values() for count in each)])
    parts = (
        *_over_time(series, colours, most, peer.binds_per_second if peer else None),
        *_percentiles(series, colours, most),
    )
    return document(title(first), TOP + 2 * HEIGHT + GAP + BOTTOM, parts)


def _full(series: Sequence[int]) -> Sequence[int]:
    """Full seconds only; a run shorter than one has what it has."""
    return series[:-1] or series


def _over_time(
    series: Mapping[str, Sequence[float]], colours: Mapping[str, str], most: float, peer: int | None
) -> Iterator[str]:
    longest = max(len(each) for each in series.values())
    up, across = round_ticks(most), round_ticks(longest, 8)
    panel = Panel(LEFT, TOP, PLOT, HEIGHT, _linear(across[-1]), _linear(up[-1]))
    yield from panel.frame("binds in each second of the run", _told(across), _told(up), "seconds since the first bind")
    names = [*colours.items(), *([("kube-scheduler, recorded on a real server", PEER_COLOUR)] if peer else [])]
    yield from legend(TOP, names)
    if peer:
        yield panel.line(PEER_COLOUR, [(0, peer), (across[-1], peer)], dashed=True)
    for name, each in series.items():
        yield panel.line(colours[name], _steps(each))


def _steps(each: Sequence[float]) -> Values:
    """A second is a flat piece, so that even one second shows."""
    return [(second + side, count) for second, count in enumerate(each) for side in (0.0, 1.0)]


def _percentiles(series: Mapping[str, Sequence[float]], colours: Mapping[str, str], most: float) -> Iterator[str]:
    up = round_ticks(most)
    panel = Panel(LEFT, TOP + HEIGHT + GAP, PLOT, HEIGHT, _linear(100), _linear(up[-1]))
    below = [(float(share), f"{share} %") for share in (0, 10, 25, 50, 75, 90, 100)]
    under = "share of the seconds that had no more"
    yield from panel.frame("binds a second, the slowest seconds first", below, _told(up), under)
    for name, each in series.items():
        ordered = sorted(each)
        points = [(100 * (i + side) / len(ordered), count) for i, count in enumerate(ordered) for side in (0, 1)]
        yield panel.line(colours[name], points)


def _scale(figures: ScaleFigures) -> str:
    every = [*figures.by_nodes, *figures.by_pods]
    if not every:
        raise NoPicture("no point of `scale` could be measured")
    costs = [cost(point) for point in every for _, _, cost in KINDS]
    up = _decades(min(costs), max(costs))
    sides: tuple[tuple[str, Sequence[Point], Callable[[Point], int], float], ...] = (
        ("nodes", figures.by_nodes, lambda point: point.nodes, LEFT),
        ("pods", figures.by_pods, lambda point: point.pods, LEFT + HALF + BETWEEN),
    )
    parts: list[str] = []
    for axis, points, size, left in sides:
        if points:
            parts += _against(axis, points, size, left, up, figures.exponents)
    return document("CPU of a decision against the size of the cluster", TOP + 2 * HEIGHT + BOTTOM, parts)


def _against(
    axis: str,
    points: Sequence[Point],
    size: Callable[[Point], int],
    left: float,
    up: Sequence[float],
    found: Mapping[str, float],
) -> Iterator[str]:
    """One panel, both axes in logarithms."""
    sizes = [size(point) for point in points]
    across = _decades(min(sizes), max(sizes))
    panel = Panel(left, TOP, HALF, 2 * HEIGHT, _log(across), _log(up))
    other = f"{points[0].pods:,} pods placed" if axis == "nodes" else f"{points[0].nodes:,} nodes"
    yield from panel.frame(f"µs of CPU, {other}", _told(across), _told(up), axis)
    told = [(f"{kind}: n^{found[f'{kind} against {axis}']:z.2f}", colour) for kind, colour, _ in KINDS]
    yield from legend(TOP, told, left)
    for _, colour, cost in KINDS:
        values = [(float(size(point)), cost(point)) for point in points]
        yield panel.line(colour, values)
        yield from panel.dots(colour, values)


def _linear(most: float) -> Callable[[float], float]:
    return lambda value: value / most


def _log(ticks: Sequence[float]) -> Callable[[float], float]:
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    return lambda value: (math.log(max(value, ticks[0])) - low) / (high - low)


def _decades(least: float, most: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from the last not above `least` to the first not below `most`."""
    every = [base * 10.0**power for power in range(-1, 9) for base in (1, 2, 5)]
    low = max(i for i, value in enumerate(every) if value <= max(least, every[0]))
    high = min(i for i, value in enumerate(every) if value >= most and i > low)
    return every[low : high + 1]


def _told(values: Sequence[float]) -> list[Tick]:
    return [(float(value), f"{value:,.0f}" if value >= 1 else f"{value:g}") for value in values]
