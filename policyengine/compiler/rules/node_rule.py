"""What filter and score rules share: what they read of nodes, and which rows change together.

The rows of one domain change together. The state of a rule that asks about domains remembers which value of the label
each row had when the column was last brought up to date, so that a node that changed domains counts in the one it left
too. For example a node that moves from zone a to zone b changes the rows of both zones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.column import Column
from policyengine.compiler.columns.frame import Frame
from policyengine.compiler.lower.hoists import Hoists
from policyengine.compiler.lower.scope import Scope, all_read, reading
from policyengine.compiler.rules.signature import Signature, Situation
from policyengine.framework.plugin import Reads
from policyengine.framework.status import SUCCESS, Rows, Status
from policyengine.language import ir
from policyengine.language.types import Reach

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot


class NodeRule:
    """A rule whose expressions are columns of nodes."""

    def __init__(self, name: str, reads: Reads, signature: Signature) -> None:
        self._name, self._reads, self._signature = name, reads, signature

    @property
    def name(self) -> str:
        """The rule's name."""
        return self._name

    @property
    def reads(self) -> Reads:
        """Derived from what the expressions read."""
        return self._reads

    def signature(self, pod: PodInfo) -> Hashable:
        """The values of the pod-only subexpressions, texts included."""
        return self._signature.of(pod)

    @property
    def situation(self) -> Situation | None:
        """What the rule reads of the cluster as a whole."""
        return self._signature.situation


class DomainRows:
    """The labels a rule's column was computed by, and their values then."""

    def __init__(self, hoists: Hoists, hoisted: tuple[Column, ...], nodes: NodeTable) -> None:
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


def domain_rows(hoists: Hoists, hoisted: tuple[Column, ...], nodes: NodeTable) -> DomainRows | None:
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
    return any(reading(expr, scope).asks_domains for expr in expressions)


def reads_of(expressions: Sequence[ir.Expr], scope: Scope) -> Reads:
    """Which parts of a row expressions read, from their reach; lists of all nodes or pods are read of every row."""
    reach = max((expr.reach for expr in expressions), default=Reach.CONSTANT)
    if reach is Reach.NODE_CHANGING or all_read(expressions, scope).is_evictable:
        return Reads.NODE | Reads.PODS
    return Reads.NODE if reach is Reach.NODE_FIXED else Reads.NOTHING
