"""Topology spread constraints, compiled for one pod (core/v1 TopologySpreadConstraint, KEP-895, 3022, 3094, 3243)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import TopologySpreadConstraint
from policyengine.cluster.view import Snapshot
from policyengine.cluster.workload_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from policyengine.framework.plugin_entry import schema_of
from policyengine.plugins.selectors.label_selector import (
    EVERYTHING,
    KEY_SCHEMA,
    PodSelector,
    compile_pod_selector,
    of_labels,
)

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
_POLICY: Final[Mapping[str, object]] = {"enum": ["Honor", "Ignore"]}
CONSTRAINT_SCHEMA: Final = schema_of(
    *("maxSkew", "topologyKey", "whenUnsatisfiable"),
    maxSkew={"type": "integer", "minimum": 1},
    topologyKey=KEY_SCHEMA,
    whenUnsatisfiable={"enum": [DO_NOT_SCHEDULE, SCHEDULE_ANYWAY]},
    minDomains={"type": "integer", "minimum": 1},
    nodeAffinityPolicy=_POLICY,
    nodeTaintsPolicy=_POLICY,
    matchLabelKeys={"type": "array", "items": KEY_SCHEMA},
    labelSelector={"type": "object"},
)
"""A constraint as arguments hold it."""
SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(topology_key=ZONE, max_skew=5, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""What kube-scheduler applies to pods without constraints that a Service or a controller selects."""
OWNER_KINDS: Final = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
"""The kinds that the selector of default constraints is made of."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint as it applies to a pod. Hashable: equal constraints share their counts."""

    key: str
    max_skew: int
    min_domains: int
    selector: PodSelector
    honors_affinity: bool
    """Only nodes that the pod's node affinity admits are counted."""
    honors_taints: bool
    """Only nodes whose taints the pod tolerates are counted."""


def compile_constraints(
    sources: Iterable[TopologySpreadConstraint],
    labels: Mapping[str, str],
    when_unsatisfiable: str,
    selector: PodSelector | None = None,
) -> tuple[Constraint, ...] | str:
    """Those of one kind, or what is wrong with one. `labels` are the pod's, for matchLabelKeys; a given `selector`
    takes the place of the constraints' own."""
    constraints: list[Constraint] = []
    for source in sources:
        if source.when_unsatisfiable != when_unsatisfiable:
            continue
        chosen = compile_pod_selector(source.label_selector)
        if isinstance(chosen, str):
            return f"topology spread constraint on `{source.topology_key}`: {chosen}"
        shared = {key: labels[key] for key in source.match_label_keys if key in labels}
        if shared:
            chosen = chosen.and_labels(shared)
        constraints.append(
            Constraint(
                source.topology_key,
                source.max_skew,
                1 if source.min_domains is None else source.min_domains,
                chosen if selector is None else selector,
                source.node_affinity_policy in (None, "Honor"),
                source.node_taints_policy == "Honor",
            )
        )
    return tuple(constraints)


def owners_selector(pod: PodInfo, snapshot: Snapshot) -> PodSelector:
    """What the Services that select the pod, and its controller, select; empty where there are none."""
    merged: dict[str, str] = {}
    for service in snapshot.objects(Service).values():
        wanted = service.spec.selector
        if service.metadata.namespace == pod.namespace and wanted.items() <= pod.labels.items():
            merged |= wanted
    owner = pod.owner
    if owner is None:
        return of_labels(merged) if merged else EVERYTHING
    key = f"{pod.namespace}/{owner.name}"
    if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = snapshot.objects(ReplicationController).get(key)
        merged |= {} if controller is None else controller.spec.selector
    selector = of_labels(merged) if merged else EVERYTHING
    if owner.api_version == "apps/v1" and owner.kind in ("ReplicaSet", "StatefulSet"):
        found = snapshot.objects(ReplicaSet if owner.kind == "ReplicaSet" else StatefulSet).get(key)
        theirs = compile_pod_selector(None if found is None else found.spec.selector)
        if isinstance(theirs, PodSelector) and not theirs.nothing:
            selector = selector.and_selector(theirs)
    return selector


def pod_matters(pod: PodInfo, old: PodInfo | None, new: PodInfo | None, constraints: Sequence[Constraint]) -> bool:
    """Whether the coming, going or update of a pod may help one that these constraints keep out."""
    if any(one is not None and not _involved(one, pod) for one in (old, new)):
        return False
    if old is None or new is None:
        one = new or old
        return one is not None and any(constraint.selector.matches(one.labels) for constraint in constraints)
    own_toleration = new.uid == pod.uid and new.shape.spec.tolerations != old.shape.spec.tolerations
    if own_toleration and any(constraint.honors_taints for constraint in constraints):
        return True
    return any(
        constraint.selector.matches(old.labels) != constraint.selector.matches(new.labels) for constraint in constraints
    )


def _involved(other: PodInfo, pod: PodInfo) -> bool:
    has_place = bool(other.node_name or other.nominated_node_name)
    return other.uid == pod.uid or (has_place and other.namespace == pod.namespace)


def node_matters(old: Node | None, new: Node | None, constraints: Sequence[Constraint]) -> bool:
    """The same of a node."""
    had = old is not None and _has_keys(old.metadata.labels, constraints)
    has = new is not None and _has_keys(new.metadata.labels, constraints)
    if old is None or new is None:
        return had or has
    if had != has:
        return True
    moved = any(old.metadata.labels.get(one.key) != new.metadata.labels.get(one.key) for one in constraints)
    return has and (moved or old.spec.taints != new.spec.taints)


def _has_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(constraint.key in labels for constraint in constraints)
