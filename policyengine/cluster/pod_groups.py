"""PodGroup objects, and which pods name which: scheduler-plugins' by a label, Kubernetes' own by a field of the pod.

A pod knows its group's object (`PodInfo.group`), so that code which sees only the pod can read it: queue keys, gang
rules, signatures. When the object comes, changes or goes, its pods are made anew with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.workload_objects import NativePodGroup, PodGroup

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


class PodGroups:
    """The pods that name a group, by kind and key."""

    def __init__(self, objects_of: Callable[[str], Mapping[str, object]]) -> None:
        """`objects_of`: kind -> key -> object."""
        self._objects_of = objects_of
        self._pods: dict[tuple[str, str], dict[str, PodInfo]] = {}

    def tell(self, pod: PodInfo) -> tuple[str, str] | None:
        """The pod is told its group. Returns which one it names."""
        named = named_by(pod)
        if named is not None:
            kind, key = named
            pod.group = cast(PodGroup | NativePodGroup | None, self._objects_of(kind).get(key))
        return named

    def enter(self, pod: PodInfo) -> None:
        """The pod is known from now on; it is told its group."""
        named = self.tell(pod)
        if named is not None:
            self._pods.setdefault(named, {})[pod.uid] = pod

    def leave(self, pod: PodInfo) -> None:
        """The pod is not known any more, or is replaced."""
        named = named_by(pod)
        if named is not None:
            pods = self._pods[named]
            del pods[pod.uid]
            if not pods:
                del self._pods[named]

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """A pod's newer form takes the place of the older."""
        named = named_by(new)
        if self._pods or named is not None:
            self.leave(old)
            self.enter(new)

    @property
    def is_empty(self) -> bool:
        """Whether no pod names a group."""
        return not self._pods

    def is_same(self, pod: PodInfo, item: object) -> bool:
        """Whether the group's object, `item` now, says what the pod knows of it: then the pod is given it as it is."""
        known = pod.group
        if known is None or not isinstance(item, PodGroup | NativePodGroup) or known.spec != item.spec:
            return known is item
        pod.group = item
        return True

    def pods_of(self, kind: str, key: str) -> Mapping[str, PodInfo]:
        """UID -> pod that names the group."""
        return self._pods.get((kind, key), _NOBODY)
