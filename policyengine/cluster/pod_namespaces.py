"""Which pods are in which namespace.

A pod knows its namespace's object (`PodInfo.home`), so that code which sees only the pod can read its labels and
annotations: queue keys, quotas, signatures. When these change, the namespace's pods are made anew with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.workload_objects import Namespace

NAMESPACE = Namespace.__name__
_NOBODY: Mapping[str, PodInfo] = {}


class PodNamespaces:
    """The pods by namespace."""

    def __init__(self, objects_of: Callable[[str], Mapping[str, object]]) -> None:
        """`objects_of`: kind -> key -> object."""
        self._namespaces = cast(Mapping[str, Namespace], objects_of(NAMESPACE))
        self._pods: dict[str, dict[str, PodInfo]] = {}

    def tell(self, pod: PodInfo) -> None:
        """The pod is told its namespace."""
        pod.home = self._namespaces.get(pod.namespace)

    def enter(self, pod: PodInfo) -> None:
        """The pod is known from now on, or takes the place of its older form."""
        self._pods.setdefault(pod.namespace, {})[pod.uid] = pod
        self.tell(pod)

    def leave(self, pod: PodInfo) -> None:
        """The pod is not known any more."""
        pods = self._pods[pod.namespace]
        del pods[pod.uid]
        if not pods:
            del self._pods[pod.namespace]

    def is_same(self, pod: PodInfo, item: object) -> bool:
        """Whether the namespace, `item` now, says what the pod knows of it."""
        return _said(pod.home) == _said(cast(Namespace | None, item))

    def pods_of(self, name: str) -> Mapping[str, PodInfo]:
        """UID -> pod of the namespace."""
        return self._pods.get(name, _NOBODY)


def _said(namespace: Namespace | None) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return ({}, {}) if namespace is None else (namespace.metadata.labels, namespace.metadata.annotations)
