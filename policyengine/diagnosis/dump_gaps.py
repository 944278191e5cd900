"""What a dump lacks that its pods, or the policies, refer to: then the forecast is of another cluster than the one it
was made of. Only a kind that is missing as a whole is told of; an object that is not there may be what a pod waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from policyengine.cluster import pod_groups
from policyengine.cluster.kinds import BY_KIND, GROUP_LABEL, NODES, PODS
from policyengine.cluster.pod_objects import Affinity, Pod
from policyengine.diagnosis.dump import DumpedObject
from policyengine.framework.profile import Profile

CLAIMS, CLASSES, VOLUMES = "PersistentVolumeClaim", "StorageClass", "PersistentVolume"
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    CLAIMS: (CLAIMS, VOLUMES, CLASSES),
    "ResourceClaim": ("ResourceClaim", "ResourceSlice", "DeviceClass"),
}
"""What is looked at along with a kind that a pod refers to."""


def missing_kinds(objects: Iterable[DumpedObject], profiles: Sequence[Profile]) -> list[str]:
    """The plurals of the kinds that are missing, as kubectl takes them, in the order of the table of kinds."""
    there = {one.kind for one in objects}
    waiting = [one.object for one in objects if one.kind == PODS.kind and not one.object.spec.node_name]
    wanted = {NODES.kind} | {kind for profile in profiles for kind in profile.kinds}
    for pod in waiting:
        wanted |= _referred_to(pod)
    return [kind.plural for kind in (NODES, *BY_KIND.values()) if kind.kind in wanted - there]


def pods_without_priority(objects: Iterable[DumpedObject]) -> int:
    """How many pods name a PriorityClass, but have no priority: no API server has seen them."""
    pods = (one.object for one in objects if one.kind == PODS.kind)
    return sum(bool(pod.spec.priority_class_name) and pod.spec.priority is None for pod in pods)


def nodes_without_room(objects: Iterable[DumpedObject]) -> list[str]:
    """The nodes whose allocatable has no `pods`, by name: no kubelet has told it, and no pod fits there."""
    nodes = (one.object for one in objects if one.kind == NODES.kind)
    return [node.metadata.name for node in nodes if "pods" not in (node.status.allocatable or {})]


def _referred_to(pod: Pod) -> set[str]:
    found: set[str] = set()
    if any(volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in pod.spec.volumes):
        found.update(_TOGETHER[CLAIMS])
    if pod.spec.resource_claims:
        found.update(_TOGETHER["ResourceClaim"])
    if GROUP_LABEL in pod.metadata.labels:
        found.add(pod_groups.POD_GROUP)
    if pod.spec.scheduling_group is not None:
        found.add(pod_groups.NATIVE)
    if pod.spec.affinity is not None and _selects_namespaces(pod.spec.affinity):
        found.add("Namespace")
    return found


def _selects_namespaces(affinity: Affinity) -> bool:
    """Whether a term says by labels which namespaces it is about."""
    parts = [part for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if part is not None]
    terms = [term for part in parts for term in part.required_during_scheduling_ignored_during_execution]
    for part in parts:
        terms += [one.pod_affinity_term for one in part.preferred_during_scheduling_ignored_during_execution]
    return any(term.namespace_selector is not None for term in terms)
