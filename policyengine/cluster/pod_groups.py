"""PodGroup objects and namespaces, and which pods know which: a pod names scheduler-plugins' group by a label,
Kubernetes' own by a field.

A pod knows its group's and its namespace's object (`PodInfo.group`, `PodInfo.home`), so that code which sees only the
pod can read them: queue keys, gang rules, quotas, signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.workload_objects import Namespace, NativePodGroup, PodGroup

NAMESPACE = Namespace.__name__
POD_GROUP, NATIVE = "PodGroup", "NativePodGroup"
KINDS = (POD_GROUP, NATIVE)
"""The kinds as the view files them: `scheduling.x-k8s.io/v1alpha1` and `scheduling.k8s.io/v1alpha2`; the API calls
both PodGroup."""
_NOBODY: Mapping[str, PodInfo] = {}


def named_by(pod: PodInfo) -> tuple[str, str] | None:
    """Kind and key (`namespace/name`) of the group that the pod names, if it names one. Its field comes first, then the
    label, then the annotation."""
    native = pod.shape.spec.scheduling_group
    if native is not None and native.pod_group_name:
        return NATIVE, f"{pod.namespace}/{native.pod_group_name}"
    name = pod.labels.get(GROUP_LABEL) or pod.annotations.get(GROUP_LABEL)
    return (POD_GROUP, f"{pod.namespace}/{name}") if name else None


@dataclass(frozen=True, slots=True)
class KnownGroups:
    """The PodGroup objects that there are. Equal to itself later, as long as none comes, changes or goes."""

    versions: tuple[int, int]
    """Of each kind, grows with its changes."""
    plain: Mapping[str, PodGroup] = field(compare=False)
    native: Mapping[str, NativePodGroup] = field(compare=False)

    def named(self, namespace: str, name: str) -> PodGroup | NativePodGroup | None:
        """The group of that name; where both kinds have one, Kubernetes' own, as for a pod that names both."""
        key = f"{namespace}/{name}"
        return self.native.get(key) or self.plain.get(key)


class RelatedPods:
    """The pods by the objects that they know: their namespace, and the group that they name.

    When such an object comes, changes what it says or goes, its pods are made anew with it.
    """

    def __init__(self, objects_of: Callable[[str], Mapping[str, object]]) -> None:
        """`objects_of`: kind -> key -> object."""
        self._objects_of = objects_of
        self._namespaces = cast(Mapping[str, Namespace], objects_of(NAMESPACE))
        self._pods: dict[tuple[str, str], dict[str, PodInfo]] = {}
        """Kind and key -> UID -> pod."""

    def tell(self, pod: PodInfo) -> tuple[str, str] | None:
        """The pod, be it of the view or not, is told its namespace and its group as they are now. Returns which group
        it names."""
        pod.home = self._namespaces.get(pod.namespace)
        named = named_by(pod)
        if named is not None:
            kind, key = named
            pod.group = cast(PodGroup | NativePodGroup | None, self._objects_of(kind).get(key))
        return named

    def enter(self, pod: PodInfo) -> None:
        """The pod is known from now on; it is told its namespace and its group."""
        named = self.tell(pod)
        self._pods.setdefault((NAMESPACE, pod.namespace), {})[pod.uid] = pod
        if named is not None:
            self._pods.setdefault(named, {})[pod.uid] = pod

    def leave(self, pod: PodInfo) -> None:
        """The pod is not known any more."""
        self._drop((NAMESPACE, pod.namespace), pod.uid)
        self._leave_group(pod)

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """A pod's newer form takes the place of the older."""
        self._leave_group(old)
        self.enter(new)

    def is_same(self, pod: PodInfo, kind: str, item: object) -> bool:
        """Whether the object, `item` now, says what the pod knows of it: then the pod is given its group as it is."""
        if kind == NAMESPACE:
            return _said(pod.home) == _said(cast(Namespace | None, item))
        known = pod.group
        if known is None or not isinstance(item, PodGroup | NativePodGroup) or known.spec != item.spec:
            return known is item
        pod.group = item
        return True

    def of(self, kind: str, key: str) -> Mapping[str, PodInfo]:
        """UID -> pod that is in the namespace, or names the group; nobody for objects of other kinds."""
        return self._pods.get((kind, key), _NOBODY)

    def _leave_group(self, pod: PodInfo) -> None:
        named = named_by(pod)
        if named is not None:
            self._drop(named, pod.uid)

    def _drop(self, key: tuple[str, str], uid: str) -> None:
        pods = self._pods[key]
        del pods[uid]
        if not pods:
            del self._pods[key]


def _said(namespace: Namespace | None) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return ({}, {}) if namespace is None else (namespace.metadata.labels, namespace.metadata.annotations)
