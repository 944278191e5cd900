"""PodTopologySpread: how unevenly matching pods may be, and should be, spread over topology domains.

Filter (DoNotSchedule): matching pods in the node's domain + 1 if the pod matches itself - the smallest number in
any domain must not exceed maxSkew; with fewer than minDomains domains the smallest number counts as 0.
Score (ScheduleAnyway): Σ (count·ln(domains + 2) + maxSkew - 1), rounded, then 100·(max + min - s)/max.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import TopologySpreadConstraint
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.elementary import ln
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import MAX_NODE_SCORE, UNCONCERNED, Reads, Scores
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.node_selector import required_key
from policyengine.plugins.topology.spread_constraint import (
    CONSTRAINT_SCHEMA,
    DO_NOT_SCHEDULE,
    OWNER_KINDS,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    compile_constraints,
    node_matters,
    owners_selector,
    pod_matters,
)
from policyengine.plugins.topology.spread_counts import SpreadCounts, SpreadFilter, SpreadScore

_MISMATCH: Final = "node(s) didn't match pod topology spread constraints"
_REFUSALS: Final = (
    Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"{_MISMATCH} (missing required label)",)),
    Refusal(Code.UNSCHEDULABLE, (_MISMATCH,)),
)
Compiled = tuple[Constraint, ...] | str
_REMEMBERED: Final = 4096


class _Own:
    """The compiled constraints of pods. Interned: equal pods share one, whose identity keys their columns."""

    def __init__(self, hard: Compiled, soft: Compiled) -> None:
        self.hard = hard
        self.soft = soft

    def itself(self, pod: PodInfo) -> tuple[bool, ...]:
        """Per hard constraint, whether it selects the pod itself."""
        if isinstance(self.hard, str):
            return ()
        return tuple(constraint.selector.matches(pod.labels) for constraint in self.hard)


def _own(pod: PodInfo) -> _Own:
    """The pod's own constraints, compiled once a shape (and labels, where they enter a selector)."""
    keyed = any(source.match_label_keys for source in pod.shape.spec.topology_spread_constraints)
    return _compiled(pod.shape, tuple(pod.labels.items()) if keyed else ())


@lru_cache(maxsize=_REMEMBERED)
def _compiled(shape: PodShape, labels: tuple[tuple[str, str], ...]) -> _Own:
    sources, known = shape.spec.topology_spread_constraints, dict(labels)
    hard, soft = (compile_constraints(sources, known, kind) for kind in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))
    return _interned(hard, soft, required_key(shape.spec), shape.spec.tolerations)


@lru_cache(maxsize=_REMEMBERED)
def _interned(hard: Compiled, soft: Compiled, required: Hashable, tolerations: Hashable) -> _Own:
    return _Own(hard, soft)


class PodTopologySpread:
    """Reads constraints, labels and namespace of the pod, labels of the nodes, and the pods on them."""

    name = "PodTopologySpread"
    reads = Reads.NODE | Reads.PODS
    kinds = OWNER_KINDS
    arguments: Final = schema_of(
        defaultConstraints={"type": "array", "items": CONSTRAINT_SCHEMA},
        defaultingType={"enum": ["System", "List"]},
    )

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
        if any(one.label_selector is not None for one in self._defaults):
            raise ValueError("PodTopologySpread: default constraints take no labelSelector")
        meant = Counter((one.topology_key, one.when_unsatisfiable) for one in self._defaults)
        for (key, when), count in meant.items():
            if count > 1:
                raise ValueError(f"PodTopologySpread: `defaultConstraints`: `{key}` with `{when}` stands there twice")

    def signature(self, pod: PodInfo) -> Hashable:
        """Constraints, labels, and what the pod requires of nodes."""
        spec = pod.shape.spec
        if not spec.topology_spread_constraints:
            if not pod.labels and pod.owner is None:
                return UNCONCERNED
            return pod.namespace, tuple(pod.labels.items()), pod.owner, required_key(spec), spec.tolerations
        own = _own(pod)
        return pod.namespace, own, own.itself(pod)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without DoNotSchedule constraints. A malformed selector refuses the pod."""
        constraints = self._constraints(pod, snapshot, DO_NOT_SCHEDULE)
        broken = constraints if isinstance(constraints, str) else self._constraints(pod, snapshot, SCHEDULE_ANYWAY)
        if isinstance(broken, str):
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (broken,)), None
        if not constraints or isinstance(constraints, str):
            return SKIP, None
        itself = [one.selector.matches(pod.labels) for one in constraints]
        state = SpreadFilter(SpreadCounts(pod, constraints, every_key=True), itself)
        state.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        return SUCCESS, state

    def filter(self, state: SpreadFilter, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """The first constraint that a node breaks is reported, and for it a missing label first."""
        return Verdicts(state.refused[rows], _REFUSALS)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped without ScheduleAnyway constraints, the default ones included."""
        constraints = self._constraints(pod, snapshot, SCHEDULE_ANYWAY)
        if not constraints or isinstance(constraints, str):
            return SKIP, None
        every_key = bool(pod.shape.spec.topology_spread_constraints) or not self._system
        state = SpreadScore(SpreadCounts(pod, constraints, every_key))
        state.update(snapshot.nodes, np.arange(snapshot.nodes.n))
        return SUCCESS, state

    def score(self, state: SpreadScore, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """`int64[rows, 2 · constraints]`: matching pods in the node's domain, and the domain's id, -1 for none."""
        return state.raw[rows]

    def normalize(self, state: SpreadScore, scores: NDArray[np.generic]) -> Scores:
        """100·(max + min - s)/max, 100 for all where max is 0. The weight of a pod by each constraint follows from how
        many domains the feasible nodes make up. Nodes that lack a key are left out, and get 0."""
        raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
        lacking = state.lacking(raw)
        counted = raw if lacking is None else raw[~lacking]
        weights = tuple(ln(state.domain_count(place, counted) + 2.0) for place in range(len(state.constraints)))
        sums = state.sums(counted, weights)
        most, least = (int(sums.max()), int(sums.min())) if len(sums) else (0, 0)
        scaled: Scores = (
            np.full(len(sums), MAX_NODE_SCORE) if most == 0 else MAX_NODE_SCORE * (most + least - sums) // most
        )
        if lacking is None:
            return scaled
        share: Scores = np.zeros(len(raw), dtype=np.int64)
        share[~lacking] = scaled
        return share

    def update(
        self, state: SpreadFilter | SpreadScore, snapshot: Snapshot, changed: Rows
    ) -> tuple[Status, Rows | None]:
        """All rows where the verdict, or the raw score, changed. What is skipped keeps no state."""
        return SUCCESS, state.update(snapshot.nodes, changed)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that come, go or change labels in the pod's namespace; nodes that change domains."""
        pods = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return on(Resource.POD, pods, _pod_changed), on(Resource.NODE, nodes, _node_changed)

    def _constraints(self, pod: PodInfo, snapshot: Snapshot, kind: str) -> Compiled:
        if pod.shape.spec.topology_spread_constraints:
            own = _own(pod)
            return own.hard if kind == DO_NOT_SCHEDULE else own.soft
        if not any(one.when_unsatisfiable == kind for one in self._defaults):
            return ()
        selector = owners_selector(pod, snapshot)
        return () if selector.empty else compile_constraints(self._defaults, pod.labels, kind, selector)


def _hinted(pod: PodInfo) -> tuple[Constraint, ...] | None:
    """The constraints a hint may go by; None where it cannot know them."""
    constraints = _own(pod).hard if pod.shape.spec.topology_spread_constraints else None
    return None if isinstance(constraints, str) else constraints


def _pod_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    constraints = _hinted(pod)
    return constraints is None or pod_matters(pod, old, new, constraints)


def _node_changed(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    constraints = _hinted(pod)
    return constraints is None or node_matters(old, new, constraints)
