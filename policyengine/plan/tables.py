"""A plan as lines and tables, for whoever shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from policyengine.plan.comparison import Effect, Fares, Plan, Sides
from policyengine.trials.ledger import clock

ROWS: Final = 10
"""Pods of one kind that are shown; JSON has more."""
MESSAGE: Final = 100
Row = tuple[str, ...]
Titled = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A table: its title, headers and rows."""


def head(plan: Plan) -> Iterator[str]:
    """What was played under what, and what to know of it."""
    yield from (f"old  {plan.old}", f"new  {plan.new}", plan.about)
    if plan.comparison.moved:
        yield f"{plan.comparison.moved:,} of them are placed on another node"
    yield from (f"note: {note}" for note in plan.notes)


def tables(plan: Plan, most: int = ROWS) -> Iterator[Titled]:
    """Title, headers and rows of each, so many rows of pods at most; names as they are, not escaped."""
    now, comparison = plan.waiting, plan.comparison
    if now is not None:
        old, new = now.placed
        rows: list[Row] = [(one.pod, one.old, one.new, _short(one.why)) for one in now.waiting[:most]]
        title = f"Of {now.count:,} pods that wait {old:,} would be placed, {new:,} with the new policy"
        yield title, ("pod", "old", "new", "why"), rows or [("none fares otherwise", "", "", "")]
        if now.evicted[0] or now.evicted[1]:
            yield "For them", ("old evicts", "new evicts"), [(_some(now.evicted[0]), _some(now.evicted[1]))]
    yield "Figures", ("", "old", "new", ""), list(_figures(comparison.old, comparison.new))
    for title, pods, tells_why in (
        ("Newly placed", comparison.newly_placed, False),
        ("Newly waiting", comparison.newly_waiting, True),
        ("Newly evicted", comparison.newly_evicted, False),
        ("Waiting longer", comparison.longer, False),
    ):
        if pods:
            headers = ("pod", "old", "new", "waited", *(["why"] if tells_why else []))
            yield f"{title}: {len(pods):,}", headers, [_fares(one)[: len(headers)] for one in pods[:most]]
    if plan.by_rule is not None:
        headers = ("rule", "undone", "pods", "waiting", "evictions", "wait p99")
        rows = [_effect(one) for one in plan.by_rule] or [("no rule differs", *[""] * 5)]
        yield "With one change undone, and the pods that fare otherwise by it", headers, rows
    if comparison.refused_by:
        rows = [(rule, str(old), str(new)) for rule, (old, new) in comparison.refused_by.items()]
        yield "Pods that wait in the end, by who refused them last", ("rule", "old", "new"), rows
    for what, groups in (
        ("tenant", comparison.by_tenant),
        ("namespace", comparison.by_namespace),
        ("priority", comparison.by_priority),
    ):
        if len(groups) > 1:
            headers = (what, "p50 old", "p50 new", "p99 old", "p99 new", "share old", "share new")
            yield f"Waits and share of the cluster by {what}", headers, _groups(groups)[:most]


def _figures(old: Any, new: Any) -> Iterator[Row]:
    """Figure, old, new, what it means: `better`, `worse` or empty."""
    for name, is_good in (("pods", None), ("placed", None), ("waiting", False), ("evictions", False)):
        yield name, f"{old[name]:,}", f"{new[name]:,}", _verdict(old[name], new[name], is_good)
    for which in ("p50", "p90", "p99", "max"):
        one, other = old["wait"][which], new["wait"][which]
        yield f"wait {which}", clock(one), clock(other), _verdict(one, other, False, 1.0)
    for name, means in (("utilisation", True), ("allocated", None), ("fragmentation", False), ("imbalance", None)):
        for resource, one in old[name].items():
            other = new[name].get(resource, 0.0)
            if one or other:
                yield f"{name} {resource}", f"{one:.1%}", f"{other:.1%}", _verdict(one, other, means, 0.005)
    for name, one in old["spread"].items():
        other = new["spread"][name]
        if min(one, other) < 1.0:
            yield f"spread {name}", f"{one:.1%}", f"{other:.1%}", ""
    for name, is_good in (("whole", True), ("partial", False)):
        one, other = old["gangs"][name], new["gangs"][name]
        if one or other:
            yield f"gangs {name}", f"{one:,}", f"{other:,}", _verdict(one, other, is_good)
    for name, used in new["quotas"].items():
        for resource, other in used.items():
            one = old["quotas"].get(name, {}).get(resource, 0.0)
            yield f"quota {name} {resource}", f"{one:.1%}", f"{other:.1%}", ""
    one, other = old["share"]["error"], new["share"]["error"]
    if one or other:
        yield "share error", f"{one:.1%}", f"{other:.1%}", _verdict(one, other, False, 0.005)


def _groups(groups: Mapping[Any, Sides]) -> list[Row]:
    """Those whose long waits differ most first."""
    ordered = sorted(groups.items(), key=lambda item: -abs(item[1][1]["p99"] - item[1][0]["p99"]))
    return [
        (
            str(name),
            *(clock(side[which]) for which in ("p50", "p99") for side in sides),
            *(f"{side['share']:.1%}" for side in sides),
        )
        for name, sides in ordered
    ]


def _effect(one: Effect) -> Row:
    """Figures without the change -> with it."""
    old, new = one.comparison.old, one.comparison.new
    waits = (clock(old["wait"]["p99"]), clock(new["wait"]["p99"]))
    counts = ((f"{old[name]:,}", f"{new[name]:,}") for name in ("waiting", "evictions"))
    told = [before if before == now else f"{before} → {now}" for before, now in (*counts, waits)]
    return one.rule, one.how, f"{one.pods:,}", *told


def _verdict(old: float, new: float, is_good: bool | None, least: float = 0.0) -> str:
    """`better` or `worse` where a figure rose or fell by more than `least`; `is_good`: whether more of it is."""
    if is_good is None or abs(new - old) <= least:
        return ""
    return "better" if (new > old) == is_good else "worse"


def _fares(one: Fares) -> tuple[str, str, str, str, str]:
    before, now = map(clock, one.waited)
    return one.pod, one.old, one.new, before if before == now else f"{before} → {now}", _short(one.why)


def _short(message: str) -> str:
    """The first sentence, and no more than fits."""
    first = message.partition(". ")[0]
    return first if len(first) <= MESSAGE else f"{first[: MESSAGE - 1]}…"


def _some(pods: Iterable[str]) -> str:
    named = list(pods)
    more = f", and {len(named) - ROWS:,} more" if len(named) > ROWS else ""
    return ", ".join(named[:ROWS]) + more if named else "nobody"
