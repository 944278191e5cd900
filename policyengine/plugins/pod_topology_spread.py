"""PodTopologySpread: how unevenly matching pods may be, and should be, spread over topology domains.

Filter (DoNotSchedule): matching pods in the node's domain + 1 if the pod matches itself - the smallest number in
any domain must not exceed maxSkew; with fewer than minDomains domains the smallest number counts as 0.
Score (ScheduleAnyway): Σ (count·ln(domains + 2) + maxSkew - 1), rounded, then 100·(max + min - s)/max.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.objects import TopologySpreadConstraint, decode
from policyengine.cluster.pod_info import PodInfo, PodShape
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.rows import at
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.domain_counts import DomainsMoved, Moved, rows_in
from policyengine.plugins.node_selector import required_key
from policyengine.plugins.per_shape import LIMIT
from policyengine.plugins.spread_constraint import (
    CONSTRAINT_SCHEMA,
    DO_NOT_SCHEDULE,
    HOSTNAME,
    OWNER_KINDS,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    compile_constraints,
    owners_selector,
)
from policyengine.plugins.spread_counts import SpreadCounts
from policyengine.plugins.spread_hints import spread_events

if TYPE_CHECKING:
    from policyengine.cluster.columns import NodeTable
    from policyengine.cluster.snapshot import Snapshot

NAME: Final = "PodTopologySpread"
_MISMATCH: Final = "node(s) didn't match pod topology spread constraints"
_UNLABELLED, _SKEWED = 1, 2
_REFUSALS: Final = (
    Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"{_MISMATCH} (missing required label)",)),
    Refusal(Code.UNSCHEDULABLE, (_MISMATCH,)),
)
Compiled = tuple[Constraint, ...] | str

ARGUMENTS: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "defaultConstraints": {"type": "array", "items": CONSTRAINT_SCHEMA},
        "defaultingType": {"enum": ["System", "List"]},
    },
    "additionalProperties": False,
}


class _Own:
    """What pods' own constraints come to. Interned: equal pods share one, whose identity keys their columns."""

    __slots__ = ("hard", "soft")

    def __init__(self, hard: Compiled, soft: Compiled) -> None:
        self.hard = hard
        self.soft = soft

    def itself(self, pod: PodInfo) -> tuple[bool, ...]:
        """Per hard constraint, whether it selects the pod itself."""
        if isinstance(self.hard, str):
            return ()
        return tuple(constraint.selector.matches(pod.labels) for constraint in self.hard)


class _FilterState:
    """The counts, whether the pod matches itself, and the verdict on each domain."""

    __slots__ = ("_least", "counts", "itself", "tables")

    def __init__(self, counts: SpreadCounts, itself: Sequence[bool]) -> None:
        self.counts = counts
        self.itself = itself
        self.tables: list[NDArray[np.int16]] = []
        self._least: list[int] = []

    def judge(self) -> None:
        """Judge every domain. The last entry of a table is for nodes without the label."""
        places = range(len(self.counts.constraints))
        self._least = [self._least_of(place) for place in places]
        self.tables = [self._table(place) for place in places]

    def judge_moved(self, moved: DomainsMoved | None) -> DomainsMoved | None:
        """Judge the domains that moved, and all others where the smallest number did; those whose verdict is
        different from before, None: any may be."""
        if moved is None:
            before = self.tables
            self.judge()
            return {} if all(map(np.array_equal, before, self.tables)) else None
        flipped: dict[str, Moved] = {}
        for place, constraint in enumerate(self.counts.constraints):
            domains = moved.get(constraint.key)
            if domains:
                flips = self._judge_place(place, domains)
                if flips:
                    flipped.setdefault(constraint.key, set()).update(flips)
        return flipped

    def _judge_place(self, place: int, moved: Moved) -> Moved:
        least, table = self._least_of(place), self.tables[place]
        if least != self._least[place]:
            self._least[place] = least
            self.tables[place] = self._table(place)
            return set(np.flatnonzero(table != self.tables[place]).tolist())
        sums, most = self.counts.counts[place].sums, self._most(place)
        flips = {domain for domain in moved if (sums.item(domain) > most) != (table.item(domain) == _SKEWED)}
        for domain in flips:
            table[domain] = _SKEWED if sums.item(domain) > most else 0
        return flips

    def _least_of(self, place: int) -> int:
        """The smallest number of any domain; 0 while there are too few domains."""
        counts = self.counts.counts[place]
        present = counts.sums[counts.members > 0]
        return int(present.min()) if len(present) >= max(1, self.counts.constraints[place].min_domains) else 0

    def _most(self, place: int) -> int:
        """How many may stand in a domain before the pod comes."""
        return self.counts.constraints[place].max_skew + self._least[place] - int(self.itself[place])

    def _table(self, place: int) -> NDArray[np.int16]:
        sums = self.counts.counts[place].sums
        table = np.full(len(sums) + 1, _UNLABELLED, dtype=np.int16)
        table[:-1] = (sums > self._most(place)) * np.int16(_SKEWED)
        return table


class _ScoreState:
    """The counts; per constraint the id of the empty label value, which counts like an absent label."""

    __slots__ = ("counts", "empty", "every_key")

    def __init__(self, counts: SpreadCounts, every_key: bool) -> None:
        self.counts = counts
        self.every_key = every_key
        self.empty: list[int] = []

    def look(self, nodes: NodeTable) -> None:
        """Find the ids of empty values."""
        self.empty = []
        for constraint in self.counts.constraints:
            values = nodes.label_values(constraint.key)
            self.empty.append(values.index("") if "" in values else -1)


class PodTopologySpread:
    """Reads constraints, labels and namespace of the pod, labels of the nodes, and the pods that stand on them."""

    name = NAME
    reads = Reads.NODE | Reads.PODS
    of_template = True
    kinds = OWNER_KINDS

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """PodTopologySpreadArgs; the system's defaults unless `defaultingType` is List. ValueError when malformed."""
        given = (arguments or {}).get("defaultConstraints") or ()
        kind = (arguments or {}).get("defaultingType") or ("List" if given else "System")
        if kind == "System" and given:
            raise ValueError("PodTopologySpread: `defaultConstraints` need `defaultingType: List`")
        self._system = kind == "System"
        self._defaults = (
            SYSTEM_DEFAULTS if self._system else tuple(decode(TopologySpreadConstraint, one) for one in given)
        )
        self._known: dict[tuple[PodShape, Hashable], _Own] = {}
        self._interned: dict[Hashable, _Own] = {}
        if any(one.label_selector is not None for one in self._defaults):
            raise ValueError("PodTopologySpread: default constraints take no labelSelector")
        meant = Counter((one.topology_key, one.when_unsatisfiable) for one in self._defaults)
        for (key, when), count in meant.items():
            if count > 1:
                raise ValueError(f"PodTopologySpread: `defaultConstraints`: `{key}` with `{when}` stands there twice")

    def signature(self, pod: PodInfo) -> Hashable:
        """What the constraints, the pod's labels and what it requires of nodes come to."""
        spec = pod.shape.spec
        if not spec.topology_spread_constraints:
            if not pod.labels and pod.owner is None:
                return UNCONCERNED
            return pod.namespace, tuple(pod.labels.items()), pod.owner, required_key(spec), spec.tolerations
        own = self._own(pod)
        return pod.namespace, own, own.itself(pod)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without DoNotSchedule constraints. A malformed selector refuses the pod."""
        constraints = self._constraints(pod, snapshot, DO_NOT_SCHEDULE)
        broken = constraints if isinstance(constraints, str) else self._constraints(pod, snapshot, SCHEDULE_ANYWAY)
        if isinstance(broken, str):
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (broken,)), None
        if not constraints or isinstance(constraints, str):
            return SKIP, None
        counts = SpreadCounts(pod, constraints, every_key=True)
        counts.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        state = _FilterState(counts, [one.selector.matches(pod.labels) for one in constraints])
        state.judge()
        return SUCCESS, state

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """The first constraint that a node breaks is reported, and for it a missing label first."""
        spread: _FilterState = state
        refused = np.zeros(len(rows), dtype=np.int16)
        for constraint, table in zip(reversed(spread.counts.constraints), reversed(spread.tables), strict=True):
            mine = table[at(snapshot.nodes.label_ids(constraint.key), rows)]
            refused = np.where(mine != 0, mine, refused)
        return Verdicts(refused, _REFUSALS)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without ScheduleAnyway constraints, the default ones included."""
        constraints = self._constraints(pod, snapshot, SCHEDULE_ANYWAY)
        if not constraints or isinstance(constraints, str):
            return SKIP, None
        every_key = bool(pod.shape.spec.topology_spread_constraints) or not self._system
        counts = SpreadCounts(pod, constraints, every_key)
        counts.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        state = _ScoreState(counts, every_key)
        state.look(snapshot.nodes)
        return SUCCESS, state

    def score(self, state: State, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """`int64[rows, 2 · constraints]`: matching pods in the node's domain, and the domain's id, -1 for none."""
        spread: _ScoreState = state
        raw = np.empty((len(rows), 2 * len(spread.counts.constraints)), dtype=np.int64)
        for place, (constraint, counts) in enumerate(zip(spread.counts.constraints, spread.counts.counts, strict=True)):
            ids = at(snapshot.nodes.label_ids(constraint.key), rows)
            if constraint.key == HOSTNAME:
                raw[:, 2 * place] = at(spread.counts.on_row[place], rows)
            else:
                raw[:, 2 * place] = np.append(counts.sums, 0)[ids]
            raw[:, 2 * place + 1] = ids
        return raw

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Domains are counted among the feasible nodes. Nodes that lack a key are left out, and get 0."""
        spread: _ScoreState = state
        raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
        ids = raw[:, 1::2]
        ignored: NDArray[np.bool_] = np.zeros(len(raw), dtype=np.bool_)
        if spread.every_key:
            np.any(ids < 0, axis=1, out=ignored)
        total = np.zeros(len(raw))
        for place, constraint in enumerate(spread.counts.constraints):
            weight = log(_domains(constraint, ids[:, place], ignored, spread.empty[place]) + 2)
            mine = raw[:, 2 * place] * weight + float(constraint.max_skew - 1)
            total += np.where(ids[:, place] >= 0, mine, 0.0)
        whole = np.floor(total)
        rounded = (whole + (total - whole >= 0.5)).astype(np.int64)
        return _evened(rounded, ignored)

    def touched(self, state: State, snapshot: Snapshot, changed: Rows) -> Rows | None:
        """All rows where a domain's verdict, or for scores a domain's sum, changed."""
        if isinstance(state, _FilterState):
            flipped = state.judge_moved(state.counts.update(snapshot.nodes, changed))
            return None if flipped is None else rows_in(flipped, snapshot.nodes, changed)
        spread: _ScoreState = state
        moved = spread.counts.update(snapshot.nodes, changed)
        spread.look(snapshot.nodes)
        return None if moved is None else rows_in(moved, snapshot.nodes, changed)

    def standing(self, state: State) -> Status:
        """What is skipped keeps no state."""
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that come, go or change labels in the pod's namespace; nodes that change domains."""
        return spread_events(self._hinted)

    def _own(self, pod: PodInfo) -> _Own:
        """The pod's own constraints, compiled once a shape (and labels, where they enter a selector)."""
        sources = pod.shape.spec.topology_spread_constraints
        keyed = any(source.match_label_keys for source in sources)
        key = (pod.shape, tuple(pod.labels.items()) if keyed else ())
        found = self._known.get(key)
        if found is None:
            if max(len(self._known), len(self._interned)) >= LIMIT:
                self._known.clear()
                self._interned.clear()
            hard, soft = (compile_constraints(sources, pod.labels, kind) for kind in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))
            equal = (hard, soft, required_key(pod.shape.spec), pod.shape.spec.tolerations)
            found = self._known[key] = self._interned.setdefault(equal, _Own(hard, soft))
        return found

    def _constraints(self, pod: PodInfo, snapshot: Snapshot, kind: str) -> Compiled:
        if pod.shape.spec.topology_spread_constraints:
            own = self._own(pod)
            return own.hard if kind == DO_NOT_SCHEDULE else own.soft
        if not any(one.when_unsatisfiable == kind for one in self._defaults):
            return ()
        selector = owners_selector(pod, snapshot)
        return () if selector.empty else compile_constraints(self._defaults, pod.labels, kind, selector)

    def _hinted(self, pod: PodInfo) -> tuple[Constraint, ...] | None:
        """The constraints a hint may go by; None where it cannot know them."""
        if not pod.shape.spec.topology_spread_constraints:
            return None
        constraints = self._own(pod).hard
        return None if isinstance(constraints, str) else constraints


def _domains(constraint: Constraint, ids: NDArray[np.int64], ignored: NDArray[np.bool_], empty: int) -> int:
    """How many domains the feasible nodes make up; each node is one of its own for the host name."""
    if constraint.key == HOSTNAME:
        return len(ids) - int(np.count_nonzero(ignored))
    seen = ids[~ignored]
    return int(np.count_nonzero(np.bincount(np.where(seen == empty, -1, seen) + 1)))


def _evened(scores: NDArray[np.int64], ignored: NDArray[np.bool_]) -> Scores:
    """100·(max + min - s)/max, 100 for all where max is 0; 0 for the ignored."""
    counted = scores[~ignored]
    if len(counted) == 0:
        return np.zeros(len(scores), dtype=np.int64)
    most, least = int(counted.max()), int(counted.min())
    if most == 0:
        return np.where(ignored, 0, MAX_NODE_SCORE)
    return np.where(ignored, 0, MAX_NODE_SCORE * (most + least - scores) // most)
