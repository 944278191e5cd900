"""A cluster read from plain objects.

It is a Kubernetes `List` (`kubectl get nodes,pods,… -A -o json`), which may hold further lists, or an object of lists
(`nodes`, `pods`, `pending`, `namespaces`, …). Pods without a node that are not finished are pending, wherever they
stand.

What a dump lacks that its pods, or the policies, refer to makes the forecast one of another cluster. Only a kind that
is missing as a whole is told of; an object that is not there may be what a pod waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policyengine.cluster import kinds, pod_groups
from policyengine.cluster.allocatable import unreadable
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Affinity, Pod
from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import Profile

_FIELDS: Final[Mapping[str, str]] = {
    kinds.NODES.dump_key: kinds.NODES.kind,
    kinds.PODS.dump_key: kinds.PODS.kind,
    "pending": kinds.PODS.kind,
    **{kind.dump_key: kind.kind for kind in kinds.BY_KIND.values() if kind.dump_key},
}


_KINDS: Final[Mapping[str, kinds.Kind[Any]]] = {
    kinds.NODES.kind: kinds.NODES,
    kinds.PODS.kind: kinds.PODS,
    **kinds.BY_KIND,
}

PRINTED_BY: Final = "kubectl get nodes,pods,… -A -o json"


class ClusterShapeError(ValueError):
    """The input is no cluster; the message says what was expected."""


@dataclass(slots=True)
class LoadedCluster:
    """A view, and the pods that wait, in the order given."""

    view: ClusterView
    pending: list[PodInfo] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DumpedObject:
    """One object that scheduling reads."""

    kind: str
    """As `cluster.kinds` names it: `Node`, `Pod`, `PersistentVolumeClaim`, …"""
    object: Any
    """The decoded struct; replace it, never write to it."""


def read_objects(cluster: Mapping[str, Any]) -> list[DumpedObject]:
    """Decode the objects, pods last (each is told its PodGroup when it comes). Those of kinds that scheduling does not
    read are passed over.

    Raises `ClusterShapeError` for a wrong shape, and `ObjectError` for a malformed object.
    """
    found: list[DumpedObject] = []
    for kind, item in sorted(objects_in(cluster), key=lambda listed: listed[0] == kinds.PODS.kind):
        _refuse_controls(kind, item)
        if kind in _KINDS:
            found.append(DumpedObject(kind, kinds.decode_given(_KINDS[kind], item)))
    return found


def load_cluster(objects: Iterable[DumpedObject], now: float = 0.0) -> LoadedCluster:
    """The objects in a view at the time `now`, in seconds since the epoch: it decides which pods that ended are still
    seen."""
    view = ClusterView()
    view.now = now
    waiting: list[str] = []
    for one in objects:
        if one.kind == kinds.NODES.kind:
            view.add_or_update_node(one.object)
        elif one.kind == kinds.PODS.kind:
            change = view.add_or_update_pod(one.object)
            if change.new is not None and not change.new.node_name and change.new.uid not in waiting:
                waiting.append(change.new.uid)
        else:
            view.set_object(one.kind, one.object)
    return LoadedCluster(view, [view.pods[uid] for uid in waiting if uid in view.pods])


def objects_in(cluster: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(kind, object) of all kinds, one after another, in the order given. Raises `ClusterShapeError`."""
    if not isinstance(cluster, Mapping):
        raise ClusterShapeError("a cluster is a JSON object: a `List`, or one with `nodes` and `pods`")
    if "items" in cluster:
        yield from _in_list(cluster)
    elif any(name in cluster for name in _FIELDS):
        for name, kind in _FIELDS.items():
            for item in _listed(cluster, name):
                yield kinds.kind_of({**item, "kind": kind}), item
    elif isinstance(cluster.get("kind"), str):
        yield kinds.kind_of(cluster), cluster
    else:
        raise ClusterShapeError(
            f"none of {', '.join(f'`{name}`' for name in ('nodes', 'pods', 'pending'))} is there, nor is it a `List`; "
            f"print one with `{PRINTED_BY}`"
        )


def carries_policies(cluster: Mapping[str, Any]) -> bool:
    """Whether there are objects that may hold policies. Raises `ClusterShapeError`."""
    return any(kind in (kinds.CONFIG_MAPS.kind, kinds.SCHEDULING_POLICIES.kind) for kind, _ in objects_in(cluster))


def _in_list(top: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, and of those in it. Items of a `PodList` need not say what they are."""
    lists = [top]
    while lists:
        listed = lists.pop()
        of_list = {"kind": str(listed.get("kind", "")).removesuffix("List"), "apiVersion": listed.get("apiVersion")}
        nested = []
        for item in _listed(listed, "items"):
            whole = item if "kind" in item or not of_list["kind"] else {**of_list, **item}
            if not isinstance(whole.get("kind"), str):
                raise ClusterShapeError("an item of the list has no `kind`")
            if whole["kind"].endswith("List") and "items" in whole:
                nested.append(whole)
            else:
                yield kinds.kind_of(whole), whole
        lists += reversed(nested)


def _refuse_controls(kind: str, item: Mapping[str, Any]) -> None:
    """Raises ClusterShapeError for a control character in a name: no API server takes one."""
    metadata = item.get("metadata")
    for name in (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, Mapping) else ():
        if isinstance(name, str) and not name.isprintable():
            raise ClusterShapeError(f"{kind} {name!a} has a control character in its name; correct the object")


def _listed(cluster: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    items = cluster.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        raise ClusterShapeError(f"`{name}` is not a list")
    for item in items:
        if not isinstance(item, Mapping):
            raise ClusterShapeError(f"`{name}` holds something that is not an object")
        yield item


CLAIMS, CLASSES, VOLUMES = "PersistentVolumeClaim", "StorageClass", "PersistentVolume"
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    CLAIMS: (CLAIMS, VOLUMES, CLASSES),
    "ResourceClaim": ("ResourceClaim", "ResourceSlice", "DeviceClass"),
}
"""What is looked at along with a kind that a pod refers to."""


def gaps(where: str, objects: Sequence[DumpedObject], profiles: Sequence[Profile]) -> list[str]:
    """What a dump lacks so that the answer may be that of another cluster: a sentence each. `where`: of the dump."""
    there = {one.kind for one in objects}
    nodes: list[Node] = [one.object for one in objects if one.kind == kinds.NODES.kind]
    pods: list[Pod] = [one.object for one in objects if one.kind == kinds.PODS.kind]
    wanted = {kinds.NODES.kind} | {kind for profile in profiles for kind in profile.kinds}
    for pod in pods:
        wanted |= set() if pod.spec.node_name else _referred_to(pod)
    notes = []
    # As kubectl takes them, in the order of the table of kinds; two kinds are called `podgroups`.
    plurals = (kind.plural for kind in (kinds.NODES, *kinds.BY_KIND.values()) if kind.kind in wanted - there)
    if missing := list(dict.fromkeys(plurals)):
        printed = ",".join(dict.fromkeys(["nodes", "pods", *missing]))
        notes.append(
            f"{where} has no {', '.join(missing)}, which its pods or the policies refer to; with them the answer may "
            f"be another: kubectl get {printed} -A -o json"
        )
    if count := sum(bool(pod.spec.priority_class_name) and pod.spec.priority is None for pod in pods):
        notes.append(
            f"{count} pod{'s' * (count > 1)} in {where} name a PriorityClass and have no priority, which an API server "
            "gives them: they count as 0"
        )
    if bare := [node.metadata.name for node in nodes if "pods" not in (node.status.allocatable or {})]:
        notes.append(
            f"{len(bare)} node{'s' * (len(bare) > 1)} in {where}, such as {bare[0]}, say no `pods` in "
            "status.allocatable, as kubelets do: no pod fits there"
        )
    if unread := [(node.metadata.name, why) for node in nodes if (why := unreadable(node))]:
        name, why = unread[0]
        more = f", nor on {len(unread) - 1} more" if len(unread) > 1 else ""
        notes.append(f"node {name} in {where}: {why}; no pod fits there{more}")
    return notes


def _referred_to(pod: Pod) -> set[str]:
    found: set[str] = set()
    if any(volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in pod.spec.volumes):
        found.update(_TOGETHER[CLAIMS])
    if pod.spec.resource_claims:
        found.update(_TOGETHER["ResourceClaim"])
    if kinds.GROUP_LABEL in pod.metadata.labels:
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
