"""The kinds of objects that scheduling reads: one row each says all that informers, dumps, rights and docs need.

A kind is added by its struct, its row here, and its word in docs/explain.md; `python -m deploy.rights` gives the
scheduler the right to it. It is listed and watched once a plugin names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from msgspec import structs

from policyengine.cluster.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from policyengine.cluster.events import Resource
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import Wire, decode, make_decoders
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from policyengine.cluster.workload_objects import (
    BetaPodGroup,
    ConfigMap,
    CustomResourceDefinition,
    Lease,
    Namespace,
    NativePodGroup,
    PodDisruptionBudget,
    PodGroup,
    ReplicaSet,
    ReplicationController,
    SchedulingPolicy,
    Service,
    StatefulSet,
)

T = TypeVar("T", bound=Wire)
NAMESPACE: Final = "default"
"""Of an object that says none."""
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""By which a pod names its PodGroup of scheduler-plugins: a label, or else an annotation."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object in the API."""

    kind: str
    list_name: str
    """Its list in a dump (`explain --cluster`), and in lower case its plural in the API."""
    type: type[T]
    group_path: str = "/api/v1"
    """`/api/v1` for the core group, else `/apis/GROUP/VERSION`."""
    event: Resource | None = None
    """What `ClusterEvent`s call it; None if no plugin waits for its changes."""
    is_dumped: bool = True
    """Whether a dump has a list of it; otherwise only a `List` has such objects."""
    patched: tuple[str, ...] = ()
    """The subresources that a scheduler patches, "" for the object itself."""
    holds_decisions: bool = False
    """Whether a scheduler's decisions stand in it: a new leader catches up with it before it decides."""
    field_selector: str = ""
    label_selector: str = ""
    page: int = 500
    """Objects of one page of a list; client-go's pager asks for so many. An object may have 1.5 MiB."""
    is_optional: bool = False
    """Whether a server may not serve the kind: then there are no such objects, until it does."""
    is_custom: bool = False
    """Whether a CustomResourceDefinition makes the kind (`definition_of`)."""
    is_namespaced: bool = True
    older: tuple[Kind[Any], ...] = ()
    """The kind in older versions of its group, the newest first, for servers that do not serve this one."""

    @property
    def plural(self) -> str:
        """How paths and RBAC name it."""
        return self.list_name.lower()

    @property
    def dump_key(self) -> str:
        """Its list in a dump; empty without one."""
        return self.list_name if self.is_dumped else ""

    @property
    def api_version(self) -> str:
        """`v1`, or `GROUP/VERSION`."""
        return self.group_path.split("/", 2)[2]

    @property
    def group(self) -> str:
        """The API group, as RBAC names it; empty for the core group."""
        parts = self.group_path.split("/")
        return parts[2] if parts[1] == "apis" else ""

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, or of one object in it."""
        parts = [self.group_path]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


_APPS, _STORAGE, _DEVICES = "/apis/apps/v1", "/apis/storage.k8s.io/v1", "/apis/resource.k8s.io/v1"
_GANGS, _NATIVE_GANGS = "/apis/scheduling.x-k8s.io/v1alpha1", "/apis/scheduling.k8s.io"

NODES = Kind("Node", "nodes", Node, event=Resource.NODE, is_namespaced=False)
PODS = Kind(
    "Pod",
    "pods",
    Pod,
    event=Resource.POD,
    patched=("status",),
    holds_decisions=True,
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
"""Finished pods hold nothing, so they are not asked for; a pod that finishes leaves the watch as a deletion."""
FINISHED_PODS = Kind(
    "FinishedPod",
    "pods",
    Pod,
    event=Resource.FINISHED_POD,
    is_dumped=False,
    field_selector="status.phase!=Pending,status.phase!=Running,status.phase!=Unknown",
)
"""The pods that `PODS` leaves out: watched only where a policy reads `node.finished`. A finished pod that is deleted
is no news."""
FINISHED_MEMBERS = replace(FINISHED_PODS, kind="FinishedMember", label_selector=GROUP_LABEL)
"""Of these the pods of scheduler-plugins' PodGroups, whose status counts them."""
POD_KINDS = frozenset({PODS.kind, FINISHED_PODS.kind, FINISHED_MEMBERS.kind})
NAMESPACES = Kind("Namespace", "namespaces", Namespace, event=Resource.NAMESPACE, is_namespaced=False)
SERVICES = Kind("Service", "services", Service, event=Resource.SERVICE)
CONFIG_MAPS = Kind("ConfigMap", "configMaps", ConfigMap, is_dumped=False, page=20)
"""Policies; not part of the cluster that is scheduled."""
SCHEDULING_POLICIES = Kind(
    "SchedulingPolicy",
    "schedulingPolicies",
    SchedulingPolicy,
    "/apis/policyengine.io/v1alpha1",
    is_dumped=False,
    patched=("status",),
    page=20,
    is_optional=True,
    is_custom=True,
)
"""Policies as objects of their own."""

_READ: tuple[Kind[Any], ...] = (
    NAMESPACES,
    SERVICES,
    Kind("ReplicationController", "replicationControllers", ReplicationController),
    Kind("ReplicaSet", "replicaSets", ReplicaSet, _APPS),
    Kind("StatefulSet", "statefulSets", StatefulSet, _APPS),
    Kind("PodDisruptionBudget", "podDisruptionBudgets", PodDisruptionBudget, "/apis/policy/v1"),
    Kind(
        "PersistentVolumeClaim",
        "persistentVolumeClaims",
        PersistentVolumeClaim,
        event=Resource.PERSISTENT_VOLUME_CLAIM,
        patched=("",),
        holds_decisions=True,
    ),
    Kind(
        "PersistentVolume",
        "persistentVolumes",
        PersistentVolume,
        event=Resource.PERSISTENT_VOLUME,
        patched=("",),
        holds_decisions=True,
        is_namespaced=False,
    ),
    Kind("StorageClass", "storageClasses", StorageClass, _STORAGE, Resource.STORAGE_CLASS, is_namespaced=False),
    Kind("CSINode", "csiNodes", CSINode, _STORAGE, Resource.CSI_NODE, is_namespaced=False),
    Kind("CSIDriver", "csiDrivers", CSIDriver, _STORAGE, Resource.CSI_DRIVER, is_namespaced=False),
    Kind("CSIStorageCapacity", "csiStorageCapacities", CSIStorageCapacity, _STORAGE, Resource.CSI_STORAGE_CAPACITY),
    Kind(
        "VolumeAttachment",
        "volumeAttachments",
        VolumeAttachment,
        _STORAGE,
        Resource.VOLUME_ATTACHMENT,
        is_namespaced=False,
    ),
    Kind(
        "ResourceClaim",
        "resourceClaims",
        ResourceClaim,
        _DEVICES,
        Resource.RESOURCE_CLAIM,
        patched=("", "status", "binding"),
        holds_decisions=True,
    ),
    Kind("ResourceSlice", "resourceSlices", ResourceSlice, _DEVICES, Resource.RESOURCE_SLICE, is_namespaced=False),
    Kind("DeviceClass", "deviceClasses", DeviceClass, _DEVICES, Resource.DEVICE_CLASS, is_namespaced=False),
)
_ALPHA_GROUP = Kind(
    "NativePodGroup",
    "podGroups",
    NativePodGroup,
    f"{_NATIVE_GANGS}/v1alpha2",
    Resource.POD_GROUP,
    is_dumped=False,
    patched=("status",),
    is_optional=True,
)
_BETA_GROUP = replace(_ALPHA_GROUP, type=BetaPodGroup, group_path=f"{_NATIVE_GANGS}/v1beta1")
_GROUPS: tuple[Kind[Any], ...] = (
    Kind(
        "PodGroup",
        "podGroups",
        PodGroup,
        _GANGS,
        Resource.POD_GROUP,
        patched=("status",),
        is_optional=True,
        is_custom=True,
    ),
    replace(_BETA_GROUP, older=(replace(_BETA_GROUP, group_path=f"{_NATIVE_GANGS}/v1alpha3"), _ALPHA_GROUP)),
)
BY_KIND: Mapping[str, Kind[Any]] = {kind.kind: kind for kind in (*_READ, *_GROUPS)}
"""The kinds that plugins may read, besides nodes and pods."""
WATCHED: Mapping[str, Kind[Any]] = {**BY_KIND, **{kind.kind: kind for kind in (FINISHED_PODS, FINISHED_MEMBERS)}}
"""The kinds that are watched once a policy reads them."""
_LEASES = Kind("Lease", "leases", Lease, "/apis/coordination.k8s.io/v1", is_dumped=False)
_GIVEN: tuple[Kind[Any], ...] = (PODS, NODES, *_READ, CONFIG_MAPS, *_GROUPS, _LEASES)
GIVEN: Mapping[str, Kind[Any]] = {kind.kind: kind for kind in _GIVEN}
"""Every kind that a test or a scenario may give."""
STRUCTS: Mapping[str, type[Wire]] = {name: kind.type for name, kind in GIVEN.items()}
GIVEN_BESIDE = tuple(name for name in GIVEN if name not in (PODS.kind, NODES.kind, _ALPHA_GROUP.kind))
"""What manifests call them, but nodes and pods, in the order in which messages list them."""
_DEFINITIONS = Kind(
    "CustomResourceDefinition",
    "customResourceDefinitions",
    CustomResourceDefinition,
    "/apis/apiextensions.k8s.io/v1",
    is_dumped=False,
    is_namespaced=False,
)
make_decoders([*STRUCTS.values(), NativePodGroup, SCHEDULING_POLICIES.type, CustomResourceDefinition])


def definition_of(kind: Kind[Any]) -> Kind[CustomResourceDefinition]:
    """The one definition that makes a custom kind: it is called `PLURAL.GROUP`."""
    return replace(_DEFINITIONS, field_selector=f"metadata.name={kind.plural}.{kind.group}")


def kind_of(item: Mapping[str, Any]) -> str:
    """An object's kind, by its name here: scheduler-plugins and Kubernetes both have a PodGroup."""
    is_native = item.get("kind") == "PodGroup" and str(item.get("apiVersion")).startswith("scheduling.k8s.io/")
    return "NativePodGroup" if is_native else str(item.get("kind"))


def decode_given(kind: Kind[Any], item: Mapping[str, Any]) -> Any:
    """The decoded object, in its namespace: `default` where it says none. Raises `ObjectError`."""
    decoded = decode(kind.type, item)
    metadata = decoded.metadata
    if not kind.is_namespaced or metadata.namespace:
        return decoded
    return structs.replace(decoded, metadata=structs.replace(metadata, namespace=NAMESPACE))
