"""What filter and score rules share: what they read of nodes and pods, and which rows change together.

Two pods with equal signatures get equal verdicts, scores and texts for as long as the situation is the same: what
the rule reads of the cluster, the time, the pod's gang or group. A column is kept for a signature, and computed again
when the situation is another.

The rows of one domain change together. The state of a rule that asks about domains remembers which value of the label
each row had when the column was last brought up to date, so that a node that changed domains counts in the one it left
too. For example a node that moves from zone a to zone b changes the rows of both zones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Column, attempt
from policyengine.compiler.columns.frame import Decision, Frame, Scalar
from policyengine.compiler.lower.list_aggregates import NOMINEE
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.rules.requeue_events import DOMAIN, is_evictable, paths_read
from policyengine.framework.plugin import Reads
from policyengine.framework.status import SUCCESS, Rows, Status
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children, free_locals, is_cluster_list, key
from policyengine.language.types import Reach, Shape
from policyengine.language.values import Optional

Situation = Callable[[PodInfo, Snapshot], Hashable]


class Decisions:
    """Remembers what was evaluated for the last pod, so that the rules of a policy evaluate its lets once.

    That holds for one pod at one moment; a column, for one set of rows too. While one pod is decided about, another may
    be asked about without a cluster: of which quota or gang it is.
    """

    def __init__(self, reads_queue: bool = True) -> None:
        """`reads_queue`: whether a rule reads what the queue or the gang says of a pod."""
        self._reads_queue = reads_queue
        self._alone: Decision | None = None
        """The last one that knows no cluster, and the pod's group then."""
        self._group: object = None
        self._whole: Decision | None = None
        """The last one that does, and when that was."""
        self._moment: Hashable = None
        self._rows: tuple[Hashable, PodInfo] | None = None
        self._columns: dict[bytes | None, dict[str, Any]] = {}
        """Rows, None for all -> their lets."""

    def about(self, pod: PodInfo, snapshot: Snapshot | None = None) -> Decision:
        """A decision that knows the pod, and the cluster where there is a snapshot."""
        if snapshot is None:
            if self._alone is None or self._alone.pod is not pod or self._group is not pod.group:
                self._alone, self._group = self._new(pod, None), pod.group
            return self._alone
        moment = _moment(snapshot)
        if self._reads_queue:
            moment = moment, snapshot.scheduling.queued(pod), snapshot.scheduling.gang(pod)
        last = self._whole
        if last is None or last.pod is not pod or last.snapshot is not snapshot or self._moment != moment:
            self._whole, self._moment = self._new(pod, snapshot), moment
        assert self._whole is not None
        return self._whole

    def _new(self, pod: PodInfo, snapshot: Snapshot | None) -> Decision:
        decision = Decision(pod, snapshot)
        for last in (self._alone, self._whole):
            if last is not None and last.pod is pod:
                decision.of_pod = last.of_pod
        return decision

    def frame(self, pod: PodInfo, snapshot: Snapshot, rows: Rows, hoisted: Mapping[int, Column]) -> Frame:
        """The rows, with the lets that other rules evaluated for the pod and these rows."""
        whole = len(rows) == snapshot.nodes.n
        frame = Frame(snapshot.nodes, None if whole else rows, hoisted)
        moment, last = _moment(snapshot), self._rows
        if last is None or last[0] != moment or last[1] is not pod:
            self._rows, self._columns = (moment, pod), {}
        frame.memo = self._columns.setdefault(None if whole else rows.tobytes(), {})
        frame.of_all = self._columns.get(None, {})
        return frame


def _moment(snapshot: Snapshot) -> Hashable:
    """Differs where anything that rows or the cluster say may differ."""
    nodes = snapshot.nodes
    positions = nodes.node_journal.position, nodes.pod_journal.position, nodes.shifts, snapshot.object_changes
    return nodes, snapshot.generation, snapshot.now, *positions


class Signature:
    """What a rule reads of the pod alone, and what it reads of the cluster: the largest such parts, each once."""

    def __init__(
        self, when: ir.Expr | None, expressions: Iterable[ir.Expr], scope: Scope, decisions: Decisions
    ) -> None:
        self._scope, self._decisions = scope, decisions
        self._seen: set[str] = set()
        self._of_pod: dict[Hashable, Scalar] = {}
        self._of_cluster: dict[Hashable, Scalar] = {}
        self._are_values = True
        """Whether everything read of the cluster is a value; not so where a list is asked about a variable."""
        self._when = None
        if when is not None and when.reach <= Reach.POD:
            self._when = scope.closure(when)
        elif when is not None:
            self._collect(when)
        for expr in expressions:
            self._collect(expr)
        self.situation: Situation | None = self._situation if self._of_cluster else None
        """What the rule reads of the cluster, as a value to compare; None where it reads nothing of it."""

    def of(self, pod: PodInfo) -> Hashable:
        """The signature. All pods the rule does not apply to share one."""
        if not self._are_values:
            return _Unshared()
        decision = self._decisions.about(pod)
        applies: Any = True if self._when is None else attempt(self._when, decision)
        if applies is False:
            return False
        return applies, *_values(self._of_pod, decision)

    def _situation(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        return _values(self._of_cluster, self._decisions.about(pod, snapshot))

    def _collect(self, whole: ir.Expr) -> None:
        """Add the parts of an expression, those of the lets it names too."""
        pending = [(whole, False)]
        while pending:
            expr, inside = pending.pop()
            if expr.reach is Reach.CONSTANT:
                continue
            if expr.shape is Shape.SCALAR and not free_locals(expr):
                if expr.reach <= Reach.POD:
                    self._of_pod[key(expr)] = self._scope.closure(expr)
                    continue
                if not inside and is_cluster_list(expr, self._scope.lets.value):
                    self._are_values = False
                elif not inside:
                    self._of_cluster[key(expr)] = self._scope.closure(expr)
                    inside = True  # its parts are among those of the cluster with it
            if isinstance(expr, ir.Field) and expr.path == ("node", "nominated"):
                self._of_pod[key(NOMINEE)] = self._scope.closure(NOMINEE)
            parts = children(expr)
            if isinstance(expr, ir.LetRef) and expr.name not in self._seen:
                self._seen.add(expr.name)
                value = self._scope.lets.value(expr.name)
                parts = () if value is None else (value,)
            pending += [(part, inside) for part in reversed(parts)]


class _Unshared:
    """Equal to nothing but itself: a column under it serves one decision."""


def _values(parts: Mapping[Hashable, Scalar], decision: Decision) -> tuple[Hashable, ...]:
    return tuple(key_of(attempt(part, decision)) for part in parts.values())


def key_of(value: Any) -> Hashable:
    """A hashable stand-in for a value: equal only for values no expression can tell apart."""
    if isinstance(value, Optional):
        return (key_of(value.content),) if value.present else ()
    if isinstance(value, Mapping):
        return tuple((name, key_of(content)) for name, content in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    if isinstance(value, float) and not value:
        return value, math.copysign(1.0, value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value  # type: ignore[no-any-return]


class NodeRule:
    """A rule whose expressions are columns of nodes."""

    def __init__(self, name: str, reads: Reads, signature: Signature) -> None:
        """`reads`: derived from what the expressions read."""
        self.name, self.reads = name, reads
        self.situation = signature.situation
        self._signature = signature

    def signature(self, pod: PodInfo) -> Hashable:
        """The values of the pod-only subexpressions, texts included."""
        return self._signature.of(pod)


class DomainRows:
    """The labels a rule's column was computed by, and their values then."""

    def __init__(self, hoists: Hoists, hoisted: Mapping[int, Column], nodes: NodeTable) -> None:
        nobody = Frame(nodes, np.zeros(0, np.int64), hoisted)
        keys = [column for column in (label(nobody) for label in hoists.domains) if column.faults is None]
        labels = {column.dictionary[int(column.values)] for column in keys if column.dictionary is not None}
        self._follows_all = hoists.follows_all
        self._ids: dict[str, NDArray[np.int32]] = {label: nodes.label_ids(label).copy() for label in sorted(labels)}

    def touched(self, nodes: NodeTable, changed: Rows) -> Rows | None:
        """The rows whose value may be another, `changed` having changed; None: all. Brings itself up to date."""
        if len(changed) == 0 and all(len(ids) == nodes.n for ids in self._ids.values()):
            return changed
        touched = np.zeros(nodes.n, np.bool_)
        touched[changed] = True
        for label, before in self._ids.items():
            now = nodes.label_ids(label)
            if self._follows_all or len(before) != len(now):
                self._ids = {label: nodes.label_ids(label).copy() for label in self._ids}
                return None
            left = before != now
            domains = np.zeros(len(nodes.label_values(label)) + 1, np.bool_)
            domains[now[changed]] = domains[now[left]] = domains[before[left]] = True
            domains[-1] = False  # where the label is absent there is no domain
            touched |= domains[now]
            if left.any():
                self._ids[label] = now.copy()
        return np.flatnonzero(touched)


def domain_rows(hoists: Hoists, hoisted: Mapping[int, Column], nodes: NodeTable) -> DomainRows | None:
    """Those of a rule for one pod; None where it asks about no domain."""
    return DomainRows(hoists, hoisted, nodes) if hoists.domains else None


class FollowsDomains:
    """What makes a rule a `TopologyPlugin`; its state has a `domains`."""

    def update(self, state: Any, snapshot: Snapshot, changed: Rows) -> tuple[Status, Rows | None]:
        """The rows of every domain in which something changed. What `pre_filter` answered stays: what could change it
        is no part of the state."""
        domains: DomainRows | None = state.domains
        return SUCCESS, changed if domains is None else domains.touched(snapshot.nodes, changed)


def asks_domains(expressions: Iterable[ir.Expr], scope: Scope) -> bool:
    """Whether one of the expressions asks about a domain, through lets too."""
    return DOMAIN in paths_read(expressions, scope)


def reads_of(expressions: Sequence[ir.Expr], scope: Scope) -> Reads:
    """Which parts of a row expressions read, from their reach; lists of all nodes or pods are read of every row."""
    reach = max((expr.reach for expr in expressions), default=Reach.CONSTANT)
    if reach is Reach.NODE_CHANGING or is_evictable(paths_read(expressions, scope)):
        return Reads.NODE | Reads.PODS
    return Reads.NODE if reach is Reach.NODE_FIXED else Reads.NOTHING
