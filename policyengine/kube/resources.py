"""Where each kind of object lives in the API, and the type it decodes to.

Only kinds that some part of the scheduler reads are listed; each costs a list and a watch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from policyengine.cluster import objects
from policyengine.cluster.metadata import Wire

T = TypeVar("T", bound=Wire)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind of object in the API."""

    kind: str
    plural: str
    type: type[T]
    group_path: str = "/api/v1"
    """`/api/v1` for the core group, else `/apis/GROUP/VERSION`."""
    field_selector: str = ""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, or of one object in it."""
        parts = [self.group_path]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


NODES = Resource("Node", "nodes", objects.Node)
PODS = Resource("Pod", "pods", objects.Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""Finished pods hold nothing, so they are not asked for; a pod that finishes leaves the watch as a deletion."""
NAMESPACES = Resource("Namespace", "namespaces", objects.Namespace)
SERVICES = Resource("Service", "services", objects.Service)
CONFIG_MAPS = Resource("ConfigMap", "configmaps", objects.ConfigMap)
EVENTS_PATH = "/apis/events.k8s.io/v1"
