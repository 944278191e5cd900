"""Two runs of the same pods beside each other: the figures of both, and the pods that fare otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from policyengine.plan.measures import dominant_share, measures, waited, waits
from policyengine.plan.membership import Member
from policyengine.plan.rerun import Rerun
from policyengine.plan.snapshot import Snapshot
from policyengine.trials.ledger import PodRecord

Sides = tuple[Mapping[str, float], Mapping[str, float]]
"""Figures before and now."""
LONGER: Final = 10.0
"""Seconds more from which a wait counts as longer."""
SHOWN: Final = 100
"""Pods of one kind that are named."""


@dataclass(frozen=True, slots=True)
class Fares:
    """A pod that fares otherwise."""

    pod: str
    old: str
    """A node, or what else became of it."""
    new: str
    why: str = ""
    """Why it waits, where it newly does."""
    waited: tuple[float, float] = (0.0, 0.0)
    """Seconds, before and now."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]
    newly_placed: list[Fares] = field(default_factory=list)
    newly_waiting: list[Fares] = field(default_factory=list)
    newly_evicted: list[Fares] = field(default_factory=list)
    longer: list[Fares] = field(default_factory=list)
    """Wait `LONGER` seconds longer, or more; the worst first."""
    moved: int = 0
    """Pods that are on another node."""
    by_tenant: Mapping[str, Sides] = field(default_factory=dict)
    """Tenant -> waits and `share`, before and now; of the pods of policies that serve tenants."""
    by_namespace: Mapping[str, Sides] = field(default_factory=dict)
    by_priority: Mapping[int, Sides] = field(default_factory=dict)
    refused_by: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Plugin or rule -> how many waiting pods it refused last, before and now."""

    @property
    def lists(self) -> dict[str, list[Fares]]:
        """The lists of pods, by their names in JSON."""
        return {
            "newlyPlaced": self.newly_placed,
            "newlyWaiting": self.newly_waiting,
            "newlyEvicted": self.newly_evicted,
            "longer": self.longer,
        }

    @property
    def json(self) -> dict[str, Any]:
        """As plain data; lists of pods are cut at `SHOWN`."""
        lists = {
            name: {"count": len(pods), "pods": [asdict(one) for one in pods[:SHOWN]]}
            for name, pods in self.lists.items()
        }
        by: dict[str, Mapping[Any, tuple[Any, Any]]] = {
            "byTenant": self.by_tenant,
            "byNamespace": self.by_namespace,
            "byPriority": self.by_priority,
            "refusedBy": self.refused_by,
        }
        groups = {
            what: {str(name): {"old": old, "new": new} for name, (old, new) in one.items()} for what, one in by.items()
        }
        return {"old": dict(self.old), "new": dict(self.new), "moved": self.moved, **lists, **groups}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does: `comparison.old` is the new policy without it, `comparison.new` the new policy."""

    rule: str
    how: str
    comparison: Comparison

    @property
    def pods(self) -> int:
        """How many fare otherwise by it."""
        found = self.comparison
        return found.moved + sum(map(len, (found.newly_placed, found.newly_waiting, found.newly_evicted)))

    @property
    def json(self) -> dict[str, Any]:
        """As plain data, without groups."""
        found = self.comparison
        counts = {name: len(pods) for name, pods in found.lists.items()}
        return {"rule": self.rule, "how": self.how, "without": dict(found.old), "moved": found.moved, **counts}


@dataclass(frozen=True, slots=True)
class Plan:
    """Both policies on the same pods."""

    about: str
    """What was played: `3,000 pods over 4 h of recording day`."""
    old: str
    new: str
    """The policies' names and the first characters of their hashes."""
    comparison: Comparison
    waiting: Snapshot | None = None
    """Of the pods that wait now, where a cluster was given."""
    notes: Sequence[str] = ()
    by_rule: Sequence[Effect] | None = None
    """Of each change, the one that touches most pods first; None where nobody asked."""
    runs: tuple[Rerun, Rerun] | None = None
    """Both, for pictures."""

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        found = {"about": self.about, "policies": {"old": self.old, "new": self.new}, **self.comparison.json}
        found |= {"now": self.waiting.json} if self.waiting is not None else {}
        found |= {"byRule": [one.json for one in self.by_rule]} if self.by_rule is not None else {}
        return found | {"notes": list(self.notes)}


def compared(old: Rerun, new: Rerun) -> Comparison:
    """Pods are told apart by their UIDs; those that were made in the place of another one count in the figures
    alone."""
    before, after = old.ledger.pods, new.ledger.pods
    both = [(before[uid], after[uid]) for uid in before if uid in after]
    placed, waiting, evicted, longer, moved = [], [], [], list[Fares](), 0
    for one, other in both:
        fares = Fares(one.name, _where(one), _where(other), other.told, (waited(one, old.end), waited(other, new.end)))
        if one.bound is None and other.bound is not None:
            placed.append(fares)
        elif one.bound is not None and other.bound is None:
            waiting.append(fares)
        elif one.how != "preempted" and other.how == "preempted":
            evicted.append(fares)
        if one.bound is not None and other.bound is not None:
            moved += one.node != other.node
            if fares.waited[1] - fares.waited[0] >= LONGER:
                longer.append(fares)
    longer.sort(key=lambda fares: fares.waited[0] - fares.waited[1])
    return Comparison(
        measures(old),
        measures(new),
        placed,
        waiting,
        evicted,
        longer,
        moved,
        _grouped(old, new, lambda pod, member: member.tenant),
        _grouped(old, new, lambda pod, member: pod.name.partition("/")[0]),
        _grouped(old, new, lambda pod, member: pod.priority),
        _refused(before.values(), after.values()),
    )


def _where(pod: PodRecord) -> str:
    if pod.how == "preempted":
        return f"{pod.node}, evicted"
    return pod.node or ("waits" if pod.state == "pending" else pod.state)


def _grouped(old: Rerun, new: Rerun, key: Callable[[PodRecord, Member], Any]) -> dict[Any, Sides]:
    """Both runs by a key of their pods; pods without one are left out."""
    groups: dict[Any, tuple[list[PodRecord], list[PodRecord]]] = {}
    for side, run in enumerate((old, new)):
        for pod in run.ledger.pods.values():
            name = key(pod, run.member(pod.uid))
            if name is not None:
                groups.setdefault(name, ([], []))[side].append(pod)
    return {name: (_of_group(before, old), _of_group(after, new)) for name, (before, after) in sorted(groups.items())}


def _of_group(pods: Sequence[PodRecord], run: Rerun) -> dict[str, float]:
    return waits(pods, run.end) | {"share": round(dominant_share(pods, run), 6)}


def _refused(old: Iterable[PodRecord], new: Iterable[PodRecord]) -> dict[str, tuple[int, int]]:
    counts = [Counter(rule for pod in pods if pod.state == "pending" for rule in pod.refused_by) for pods in (old, new)]
    return {rule: (counts[0][rule], counts[1][rule]) for rule in sorted(counts[0] | counts[1])}
