"""What `tune` found, as tables and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from policyengine.commands.reports.tables import print_tables

if TYPE_CHECKING:
    from policyengine.plan.tables import Titled
    from policyengine.tuning.session import Found

FRONT: Final = 20
"""Candidates of the front that are shown."""
Row = Sequence[str]


def show(found: Found, notes: Sequence[str]) -> None:
    """Print it."""
    print_tables(head(found), tables(found), notes)


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
