"""A pod and a cluster with a few things changed, and what a profile says of that: the ground `suggest` stands on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import PodSpec
from policyengine.cluster.pod_shape import shape_of
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.evaluator import Diagnosis, Evaluator
from policyengine.framework.nominated import filter_with_nominated


@dataclass(frozen=True, slots=True)
class Change:
    """One thing done differently."""

    kind: str
    """`request`, `tolerate`, `drop`, `relax`, `free`, `uncordon`."""
    subject: str
    """The resource, taint, label, … it is about; changes of one kind to one subject are variants of each other."""
    text: str
    """What an operator would do, as an order: `tolerate the taint gpu:NoSchedule`."""
    cost: float
    """How much it asks for, to compare changes with: 1 for little."""
    detail: dict[str, Any] = field(default_factory=dict, compare=False)
    """The change as plain data, for JSON."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The input with changes applied."""

    pod: PodInfo
    changes: tuple[Change, ...] = ()
    gone: frozenset[str] = frozenset()
    """UIDs of running pods taken away."""
    uncordoned: frozenset[str] = frozenset()
    """Names of nodes made schedulable."""

    @property
    def cost(self) -> tuple[int, float]:
        """Fewer changes first, then smaller ones."""
        return len(self.changes), sum(change.cost for change in self.changes)

    def with_spec(self, change: Change, spec: PodSpec) -> Attempt:
        """With another spec of the pod, which then belongs to no view."""
        pod = copy(self.pod)
        pod.shape = shape_of(spec)
        return self._with(change, pod=pod)

    def without(self, change: Change, uids: frozenset[str]) -> Attempt:
        """With running pods taken away."""
        return self._with(change, gone=self.gone | uids)

    def with_uncordoned(self, change: Change, node: str) -> Attempt:
        """With a node made schedulable."""
        return self._with(change, uncordoned=self.uncordoned | {node})

    def _with(self, change: Change, **fields: Any) -> Attempt:
        return dataclasses.replace(self, changes=(*self.changes, change), **fields)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A cluster and the profile that decides. The view is as before after every question."""

    view: ClusterView
    evaluator: Evaluator

    @contextmanager
    def cluster_of(self, attempt: Attempt) -> Iterator[Snapshot]:
        """The cluster as the attempt has it, until the block ends."""
        with ExitStack() as stack:
            for name in sorted(attempt.uncordoned):
                stack.enter_context(self._uncordoned(name))
            yield stack.enter_context(self.view.hypothetically(remove=sorted(attempt.gone)))

    @contextmanager
    def _uncordoned(self, name: str) -> Iterator[None]:
        node = self.view.nodes.objects[self.view.nodes.row_of[name]]
        try:
            self.view.add_or_update_node(_schedulable(node))
            yield
        finally:
            # The changed node has no version, and so is replaced by any.
            self.view.add_or_update_node(node)

    def filter(self, attempt: Attempt) -> Diagnosis:
        """The diagnosis of the changed input. Its reasons are read at once or not at all."""
        with self.cluster_of(attempt):
            return filter_with_nominated(self.evaluator, self.view, attempt.pod)

    def placement(self, attempt: Attempt) -> tuple[str, int] | None:
        """(the node that would be chosen, how many fit); None where none fits."""
        with self.cluster_of(attempt) as snapshot:
            diagnosis = filter_with_nominated(self.evaluator, self.view, attempt.pod)
            if len(diagnosis.feasible) == 0:
                return None
            node_scores = self.evaluator.score(attempt.pod, snapshot, diagnosis)
            return snapshot.nodes.names[node_scores.best(attempt.pod.uid)], len(diagnosis.feasible)


def _schedulable(node: Node) -> Node:
    """The node without the cordon, and without the taint that the node controller adds to cordoned ones."""
    kept = tuple(taint for taint in node.spec.taints if taint.key != "node.kubernetes.io/unschedulable")
    spec = replace(node.spec, unschedulable=False, taints=kept)
    return replace(node, metadata=replace(node.metadata, resource_version=""), spec=spec)
