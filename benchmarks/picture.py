"""Pictures of measurements as SVG: binds over a run and their spread; cost against the size of a cluster.

A picture reads in light and dark: it has no background, and its ink is a grey with enough contrast on white and black.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Final

from benchmarks.peers import peer_of
from benchmarks.records import Record, middle_runs, title
from benchmarks.scale import COSTS, Point, ScaleFigures

INK: Final = "#6e7781"
COLOURS: Final = ("#1f77b4", "#d9730d", "#2e9e5b", "#a24fc4")
STYLE: Final = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": COLOURS,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.alpha": 0.35,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "policyengine",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class NoPicture(ValueError):
    """There is nothing to draw of this measurement; the message says what there would be."""


def svg(record: Record) -> str:
    """The picture of an end-to-end measurement, of `limit`, or of `scale`. Raises `NoPicture`."""
    if record.what not in ("end-to-end", "limit", "scale"):
        raise NoPicture(f"there is no picture of `{record.what}`: a workload, `limit` and `scale` have one")
    try:
        from cycler import cycler
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPicture("pictures need matplotlib, of the extra `benchmarks`") from None
    style: dict[str, Any] = {**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
    with rc_context(style):
        figure = Figure(figsize=(9.6, 5.6))
        if record.what == "scale":
            _scale(figure, ScaleFigures.from_json(record.figures))
        else:
            _runs(figure, record)
        out = StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def _runs(figure: Any, record: Record) -> None:
    """Binds in each second of the run, and the same seconds in order, the slowest first."""
    runs = middle_runs(record)
    first = next(iter(runs.values()))
    figure.suptitle(f"{title(first)}, {first['server']} server")
    over_time, in_order = figure.subplots(2, 1)
    over_time.set(xlabel="seconds since the first bind", ylabel="binds in a second")
    in_order.set(xlabel="share of the seconds that had no more, %", ylabel="binds in a second")
    for name, run in runs.items():
        series = _full(run["samples"]["series"])
        over_time.stairs(series, range(len(series) + 1), baseline=None, label=name, gid=f"run {name}")
        share = [100 * i / len(series) for i in range(len(series) + 1)]
        in_order.stairs(sorted(series), share, baseline=None)
    peer = peer_of(first["workload"], first["nodes"], first["pods"])
    if peer is not None:
        told = "kube-scheduler, recorded on a real server"
        over_time.axhline(peer.binds_per_second, color=INK, linestyle="--", label=told)
    for axes in (over_time, in_order):
        axes.set_ylim(bottom=0)
    over_time.legend(loc="lower right", ncols=2)


def _full(series: Sequence[int]) -> Sequence[int]:
    """Full seconds only; a run shorter than one has what it has."""
    return series[:-1] or series


def _scale(figure: Any, found: ScaleFigures) -> None:
    """CPU of a decision against nodes and against pods, both axes in logarithms."""
    sides: Mapping[str, Sequence[Point]] = {"nodes": found.by_nodes, "pods": found.by_pods}
    drawn = {axis: points for axis, points in sides.items() if points}
    if not drawn:
        raise NoPicture("no point of `scale` could be measured")
    figure.suptitle("CPU of a decision against the size of the cluster")
    for (axis, points), axes in zip(drawn.items(), figure.subplots(1, len(drawn), squeeze=False)[0], strict=True):
        other = f"{points[0].pods:,} pods placed" if axis == "nodes" else f"{points[0].nodes:,} nodes"
        axes.set(xscale="log", yscale="log", xlabel=axis, ylabel=f"µs of CPU, {other}")
        for kind in ("different pods", "identical pods"):
            label = f"{kind}: n^{found.exponents[f'{kind} against {axis}']:z.2f}"
            sizes = [getattr(point, axis) for point in points]
            axes.plot(sizes, [COSTS[kind](point) for point in points], marker="o", label=label)
        axes.legend()
