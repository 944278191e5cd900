"""A pod and a cluster with a few things changed, and what a profile says of that: the ground `suggest` stands on.

Pure: no pod is ever written to, and the view is as before after every question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine import quantity
from policyengine.cluster.node_objects import Node, NodeSelector
from policyengine.cluster.objects import SelectorRequirement
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Container, PodSpec, Resources
from policyengine.cluster.pod_shape import shape_of
from policyengine.cluster.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.framework.evaluator import Diagnosis, Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.plugins.selectors.node_selector import required_affinity

T = TypeVar("T", bound=Struct)
REQUIRED: Final = "required_during_scheduling_ignored_during_execution"


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


# ---- the pod with a little less asked of the cluster


def amount_text(resource: str, amount: int) -> str:
    """An amount in the scheduler's unit of the resource, as one writes it: `250m`, `2Gi`, `3`."""
    if resource == CPU:
        return quantity.format_cpu(amount)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return quantity.format_bytes(amount)
    return quantity.format_count(amount)


def requesting(spec: PodSpec, resource: str, target: int) -> PodSpec | None:
    """The spec with at most `target` of the resource requested, taken from the largest requests first; None where
    that cannot be had (overhead alone is more)."""
    if spec.resources is not None and resource in spec.resources.requests:
        overhead = _read(spec.overhead, resource)
        lower = _resources(spec.resources, resource, target - overhead) if target > overhead else None
        return None if lower is None else replace(spec, resources=lower)
    for _ in range(len(spec.containers) + len(spec.init_containers) + 1):
        excess = shape_of(spec).requests.get(resource) - target
        if excess <= 0:
            return spec
        reduced = _largest_reduced(spec, resource, excess)
        if reduced is None:
            return None
        spec = reduced
    return None


def _largest_reduced(spec: PodSpec, resource: str, excess: int) -> PodSpec | None:
    """With the excess taken off the one container whose reduction helps most."""
    best: tuple[int, PodSpec] | None = None
    for name in ("containers", "init_containers"):
        containers: tuple[Container, ...] = getattr(spec, name)
        for place, container in enumerate(containers):
            held = _read(container.resources.requests, resource)
            if held == 0:
                continue
            lower = replace(container, resources=_resources(container.resources, resource, max(held - excess, 0)))
            listed: dict[str, Any] = {name: (*containers[:place], lower, *containers[place + 1 :])}
            changed = replace(spec, **listed)
            left = shape_of(changed).requests.get(resource)
            if best is None or left < best[0]:
                best = (left, changed)
    if best is None or best[0] >= shape_of(spec).requests.get(resource):
        return None
    return best[1]


def _read(quantities: Mapping[str, str | int | float], resource: str) -> int:
    try:
        text = str(quantities.get(resource, "0"))
        return quantity.milli_value(text) if resource == CPU else quantity.value(text)
    except quantity.QuantityError:
        return 0


def _resources(resources: Resources, resource: str, amount: int) -> Resources:
    return replace(resources, requests=dict(resources.requests) | {resource: amount_text(resource, amount)})


def replaced(item: T, path: Sequence[str], change: Callable[[Any], object]) -> T:
    """The struct with what a path of attributes leads to changed; `item` itself stays as it is."""
    name, *further = path
    held = getattr(item, name)
    changes: dict[str, Any] = {name: replaced(held, further, change) if further else change(held)}
    return replace(item, **changes)


def required_node_expressions(spec: PodSpec) -> list[SelectorRequirement]:
    """The distinct label requirements of required node affinity, in order."""
    selector = required_affinity(spec)
    terms = selector.node_selector_terms if selector else ()
    return list(dict.fromkeys(expression for term in terms for expression in term.match_expressions))


def without_node_expression(spec: PodSpec, expression: SelectorRequirement) -> PodSpec:
    """The spec without a label requirement in any term of its required node affinity; without that affinity where
    nothing else was in a term (an empty one would match no node)."""

    def without(selector: NodeSelector) -> NodeSelector | None:
        terms = tuple(
            replace(term, match_expressions=tuple(one for one in term.match_expressions if one != expression))
            for term in selector.node_selector_terms
        )
        emptied = any(not term.match_expressions and not term.match_fields for term in terms)
        return None if emptied else replace(selector, node_selector_terms=terms)

    return replaced(spec, ("affinity", "node_affinity", REQUIRED), without)


def without_host_port(spec: PodSpec, port: int) -> PodSpec:
    """The spec with this port on no host any more."""

    def without(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(one, ports=tuple(replace(of, host_port=0) if of.host_port == port else of for of in one.ports))
            for one in containers
        )

    return replace(spec, containers=without(spec.containers), init_containers=without(spec.init_containers))
