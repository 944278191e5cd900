"""A pod and a cluster with a few things changed, and what a profile says of that: the ground `suggest` stands on.

Pure: no pod is ever written to, and the view is as before after every question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod, PodSpec
from policyengine.cluster.pod_shape import shape_of
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.diagnosis.dump import DumpedObject
from policyengine.framework.changes import NO_ROWS
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.post_filter import PostFilterPlugin, run_post_filters
from policyengine.framework.profile import Profile
from policyengine.framework.status import Rows

FILLED = 1_000
"""Members of a gang that are given room one by one before the first that finds none is looked at."""

Edit = Callable[[PodSpec], PodSpec]
EvaluatorOf = Callable[[str, Profile | None], Evaluator | None]
"""(scheduler name, a profile instead of the one that serves it, if any) -> who judges; None where nobody serves it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing done differently."""

    kind: str
    """As docs/explain.md lists them: `request`, `tolerate`, `free`, …"""
    subject: str
    """The resource, taint, label, … it is about; changes of one kind to one subject are variants of each other."""
    text: str
    """What an operator would do, as an order: `tolerate the taint gpu:NoSchedule`."""
    cost: float
    """How much it asks for, to compare changes with: 1 for little."""
    detail: dict[str, Any] = field(default_factory=dict, compare=False)
    """The change as plain data, for JSON."""
    kubectl: str = ""
    """The command that makes it, where there is one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The input with changes applied."""

    pod: PodInfo
    """As changed. Of a gang: a member that finds no room; what is done to it is done to all that wait."""
    waiting: tuple[str, ...] = ()
    """The names of all of its gang's members that wait, where there are more; they share a namespace."""
    changes: tuple[Change, ...] = ()
    edits: tuple[Edit, ...] = ()
    """What was done to the spec, in order."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels given to the pod."""
    gone: frozenset[str] = frozenset()
    """UIDs of running pods taken away."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Nodes changed or added, by name."""
    made: tuple[DumpedObject, ...] = ()
    """Other objects changed or made."""
    profile: Profile | None = None
    """Serves instead of the one that does."""

    @property
    def cost(self) -> tuple[int, float]:
        """Fewer changes first, then smaller ones."""
        return len(self.changes), sum(change.cost for change in self.changes)

    def with_spec(self, change: Change, edit: Edit) -> Attempt:
        """With another spec of the pod, which then belongs to no view."""
        pod = copy(self.pod)
        pod.shape = shape_of(edit(pod.shape.spec))
        return self.also(self._of_all(change), pod=pod, edits=(*self.edits, edit))

    def with_label(self, change: Change, key: str, value: str) -> Attempt:
        """With a label of the pod."""
        pod = copy(self.pod)
        pod.labels = {**pod.labels, key: value}
        return self.also(self._of_all(change), pod=pod, labels={**self.labels, key: value})

    def with_nodes(self, change: Change, nodes: Sequence[Node]) -> Attempt:
        """With nodes changed or added."""
        return self.also(change, nodes={**self.nodes, **{node.metadata.name: node for node in nodes}})

    def with_objects(self, change: Change, kind: str, items: Sequence[Any]) -> Attempt:
        """With other objects changed or made, decoded."""
        return self.also(change, made=(*self.made, *(DumpedObject(kind, item) for item in items)))

    def applied_to(self, pod: Pod) -> Pod:
        """A pod that is to be placed, as changed."""
        spec = pod.spec
        for edit in self.edits:
            spec = edit(spec)
        labels = {**pod.metadata.labels, **self.labels}
        return replace(pod, spec=spec, metadata=replace(pod.metadata, labels=labels))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pods that are changed alike."""
        return self.waiting or (self.pod.name,)

    def _of_all(self, change: Change) -> Change:
        if not self.waiting:
            return change
        return dataclasses.replace(change, text=f"{change.text} (all {len(self.waiting)} members that wait)")

    def also(self, change: Change, **fields: Any) -> Attempt:
        """With a change, and what it does to the fields."""
        return dataclasses.replace(self, changes=(*self.changes, change), **fields)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A cluster and the profiles that decide. The view is as before after every question."""

    view: ClusterView
    evaluator_of: EvaluatorOf
    served: tuple[str, ...] = ()
    """Scheduler names that may be asked for."""
    mates: tuple[tuple[str, str], ...] = ()
    """(UID, node) of the members of the pod's gang that have room already."""
    left: int = 1
    """How many pods like the one asked about need room beside them, itself included."""
    missing: int = 0
    """How many more members the gang takes, whom nobody has made."""
    there: Collection[str] | None = None
    """The names of the nodes, and the UIDs of the running pods, that are there without a change; None: all that the
    view shows."""

    def is_node(self, row: int) -> bool:
        """Whether the node is there without a change."""
        return self.there is None or self.view.nodes.names[row] in self.there

    def short(self, attempt: Attempt) -> int:
        """How many pods like the one asked about need room in the cluster of the attempt, itself included."""
        return self.left + (len(self.mates) if attempt.edits else 0)

    def evaluator(self, attempt: Attempt) -> Evaluator | None:
        """Who judges the pod as it is now; None where nobody serves it."""
        return self.evaluator_of(attempt.pod.scheduler_name, attempt.profile)

    @contextmanager
    def cluster_of(self, attempt: Attempt) -> Iterator[Snapshot]:
        """The cluster as the attempt has it, until the block ends."""
        view, nodes = self.view, self.view.nodes
        with ExitStack() as stack:
            # What is changed has no version, and so replaces any, and is replaced by any.
            for name, node in sorted(attempt.nodes.items()):
                if (row := nodes.row_of.get(name)) is None:
                    stack.callback(view.remove_node, name)
                else:
                    stack.callback(view.add_or_update_node, nodes.objects[row])
                view.add_or_update_node(replace(node, metadata=replace(node.metadata, resource_version="")))
            for one in attempt.made:
                if isinstance(one.object, Pod):
                    continue
                metadata = one.object.metadata
                if (before := view.objects_of(one.kind).get(metadata.key)) is None:
                    stack.callback(view.remove_object, one.kind, metadata.key)
                else:
                    stack.callback(view.set_object, one.kind, before)
                view.set_object(one.kind, replace(one.object, metadata=replace(metadata, resource_version="")))
            # Mates that are changed with the pod are to be placed anew.
            mates = [] if attempt.edits else [mate for mate in self.mates if mate[0] != attempt.pod.uid]
            yield stack.enter_context(view.hypothetically(remove=sorted(attempt.gone), add=mates))

    def refused(self, attempt: Attempt) -> dict[str, Rows] | None:
        """Plugin -> the rows it was the first to refuse, all of them where it refuses the pod as a whole; empty where
        some node passes. Nodes that changes added are left out. None where nobody serves the pod."""
        evaluator, names = self.evaluator(attempt), self.view.nodes.names
        if evaluator is None:
            return None
        with self.cluster_of(attempt):
            found = filter_with_nominated(evaluator, self.view, attempt.pod)
            by_plugin = {} if len(found.feasible) else found.by_plugin()
        asked = np.array([self.is_node(row) for row in range(len(names))], dtype=np.bool_)
        return {plugin: (known := rows[rows < len(names)])[asked[known]] for plugin, rows in by_plugin.items()}

    def node(self, attempt: Attempt, row: int) -> Node:
        """A node as the attempt has it."""
        return attempt.nodes.get(self.view.nodes.names[row], self.view.nodes.objects[row])

    def fits(self, attempt: Attempt) -> bool:
        """Whether some node passes every filter."""
        return len(self.feasible(attempt)) > 0

    def feasible(self, attempt: Attempt) -> Rows:
        """The rows that pass every filter; those of nodes that the attempt added come last."""
        evaluator = self.evaluator(attempt)
        if evaluator is None:
            return NO_ROWS
        with self.cluster_of(attempt):
            return filter_with_nominated(evaluator, self.view, attempt.pod).feasible

    def placement(self, attempt: Attempt) -> tuple[str, int] | None:
        """(the node that would be chosen, how many fit); None where none fits, or the pod may not be tried."""
        evaluator = self.evaluator(attempt)
        if evaluator is None:
            return None
        with self.cluster_of(attempt) as snapshot:
            diagnosis = filter_with_nominated(evaluator, self.view, attempt.pod)
            if len(diagnosis.feasible) == 0:
                return None
            node_scores = evaluator.score(attempt.pod, snapshot, diagnosis)
            return snapshot.nodes.names[node_scores.best(attempt.pod.uid)], len(diagnosis.feasible)

    def preempts(self, attempt: Attempt) -> bool:
        """Whether the pod fits nowhere, and the policy would make room for it."""
        evaluator = self.evaluator(attempt)
        if evaluator is None:
            return False
        with self.cluster_of(attempt):
            diagnosis = filter_with_nominated(evaluator, self.view, attempt.pod)
            if len(diagnosis.feasible):
                return False
            plugins = [one for one in evaluator.profile.post_filters if isinstance(one, PostFilterPlugin)]
            found = run_post_filters(plugins, attempt.pod, diagnosis, evaluator, self.view)
            return bool(found.victims)


def with_gang(ground: WhatIf, pod: PodInfo) -> tuple[WhatIf, PodInfo]:
    """The ground and a pod of the gang that finds no room on it, once others of the gang have found theirs; the pod
    itself where it has no gang, or all find room."""
    view = ground.view
    gang = view.scheduling.gang(pod)
    evaluator = ground.evaluator_of(pod.scheduler_name, None)
    if gang is None or gang.min < 2 or evaluator is None:
        return ground, pod
    needed = max(1, gang.min - gang.reserved - gang.bound)
    missing = max(0, gang.min - gang.size)
    mates: list[tuple[str, str]] = []
    refused = pod
    with ExitStack() as stack:
        for mate in [pod, *waiting_mates(view, pod)][: min(needed, FILLED)]:
            chosen = evaluator.select_node(mate, view.snapshot())
            if chosen is None:
                refused = mate
                break
            mates.append((mate.uid, chosen.node))
            stack.enter_context(view.hypothetically(add=mates[-1:]))
    left = max(1, needed - len(mates))
    return dataclasses.replace(ground, mates=tuple(mates), left=left, missing=missing), refused


def waiting_mates(view: ClusterView, pod: PodInfo) -> list[PodInfo]:
    """The other pods of the pod's gang that have no node, in the order in which they came."""
    others = (view.pods.get(uid) for uid in view.scheduling.members(pod) if uid != pod.uid)
    return [other for other in others if other is not None and not other.node_name]
