"""`PodInfo`: one pod as the cluster view keeps it, its spec shared through `PodShape`.

Only `ClusterView` writes to a `PodInfo`, and only to `state`, `node_name`, `nominated_node_name`, `group` and `home`.
An update from the API makes a new one, so that an old one stays what it was.
"""

from __future__ import annotations

import sys
from enum import Enum

from msgspec.structs import replace

from policyengine.cluster.objects import ObjectError, ObjectMeta, OwnerReference, parse_time
from policyengine.cluster.pod_objects import Pod, PodCondition, PodResourceClaimStatus, PodStatus
from policyengine.cluster.pod_requests import Requests
from policyengine.cluster.pod_shape import PodShape, interned, interned_map, shape_again, shape_of
from policyengine.cluster.workload_objects import Namespace, NativePodGroup, PodGroup
from policyengine.enum_members import direct_members

SUCCEEDED = "Succeeded"
"""The phase of a pod whose containers have all done their work."""


@direct_members
class PodState(Enum):
    """The state of a pod; `ClusterView` has the transitions."""

    PENDING = "pending"
    ASSUMED = "assumed"
    BOUND = "bound"
    GONE = "gone"


class PodInfo:
    """A pod, as small as it can be kept."""

    __slots__ = (
        "annotations",
        "conditions",
        "created_at",
        "deleting",
        "deletion_due",
        "finished",
        "generation",
        "group",
        "home",
        "labels",
        "name",
        "namespace",
        "node_name",
        "nominated_node_name",
        "owner_references",
        "phase",
        "priority",
        "resource_claims",
        "resource_version",
        "restarts",
        "scheduled_at",
        "shape",
        "started_at",
        "state",
        "uid",
    )

    def __init__(self, pod: Pod, known: PodInfo | None = None) -> None:
        """`known`: the pod as it was seen before, with which everything that is still equal is shared."""
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        if known is None:
            self.shape: PodShape = shape_of(spec, status)
            self.labels: dict[str, str] = interned_map(metadata.labels)
            self.annotations: dict[str, str] = interned_map(metadata.annotations)
            self.owner_references: tuple[OwnerReference, ...] = interned(metadata.owner_references)
        else:
            self.shape = shape_again(known.shape, spec, status)
            self.labels = _same_map(known.labels, metadata.labels)
            self.annotations = _same_map(known.annotations, metadata.annotations)
            owners, before = metadata.owner_references, known.owner_references
            self.owner_references = before if owners == before else interned(owners)
        self.uid: str = metadata.uid or f"{metadata.namespace}/{metadata.name}"
        """The UID; for a pod that never was on a server, its key."""
        self.name: str = metadata.name
        self.namespace: str = sys.intern(metadata.namespace)
        self.resource_version: str = metadata.resource_version
        self.generation: int = metadata.generation
        self.created_at: float = seconds_or_none(metadata.creation_timestamp) or 0.0
        """Seconds since the epoch; 0.0 where unknown."""
        deleted_at = metadata.deletion_timestamp
        self.deleting: bool = deleted_at is not None
        self.deletion_due: float = 0.0 if deleted_at is None else seconds_or_none(deleted_at) or 0.0
        """When a pod that is being deleted should be gone, its grace period over; 0.0 for others."""
        self.priority: int = spec.priority or 0
        self.node_name: str = sys.intern(spec.node_name)
        """The node it is bound to or assumed on; "" while pending."""
        self.nominated_node_name: str = sys.intern(status.nominated_node_name)
        self.phase: str = sys.intern(status.phase)
        self.finished: bool = status.phase in (SUCCEEDED, "Failed")
        self.state: PodState = PodState.BOUND if spec.node_name else PodState.PENDING
        self.started_at: float | None = seconds_or_none(status.start_time)
        self.scheduled_at: float | None = None
        self.restarts: int = 0
        self.group: PodGroup | NativePodGroup | None = None
        """The object of the pod group it names, if there is one; `ClusterView` knows."""
        self.home: Namespace | None = None
        """Its namespace, if that is known; `ClusterView` knows."""
        self.conditions: tuple[PodCondition, ...] = ()
        """PodScheduled, DisruptionTarget and PodResizePending, without times."""
        self.resource_claims: tuple[PodResourceClaimStatus, ...] = status.resource_claim_statuses
        if status is not _UNKNOWN:
            self._read(status)

    def _read(self, status: PodStatus) -> None:
        for container in status.container_statuses:
            self.restarts += container.restart_count
        kept = [condition for condition in status.conditions if condition.type in _CONDITIONS_KEPT]
        for condition in kept:
            if condition.type == "PodScheduled" and condition.status == "True":
                self.scheduled_at = seconds_or_none(condition.last_transition_time)
        self.conditions = tuple([replace(condition, last_transition_time=None) for condition in kept])
        if not any(condition.message for condition in kept):
            self.conditions = interned(self.conditions)  # a pod that waits is told something else each time

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def scheduler_name(self) -> str:
        """The scheduler the pod asks for."""
        return self.shape.spec.scheduler_name

    @property
    def requests(self) -> Requests:
        """What the pod asks for."""
        return self.shape.requests

    @property
    def owner(self) -> OwnerReference | None:
        """The controller that manages the pod."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def problem(self) -> str | None:
        """Why the pod is refused outright, such as a malformed quantity."""
        return self.shape.problem

    def __repr__(self) -> str:
        place = f" on {self.node_name}" if self.node_name else ""
        return f"<PodInfo {self.key} {self.state.value}{place}>"


def _same_map(known: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    return known if known == new else interned_map(new)


_UNKNOWN = Pod(metadata=ObjectMeta()).status
"""The status of a pod that has none: all such pods share it."""

_CONDITIONS_KEPT = frozenset({"PodScheduled", "DisruptionTarget", "PodResizePending"})


def seconds_or_none(text: object) -> float | None:
    """The time, or None where it is absent or cannot be read: a bad time must not hide the pod."""
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ObjectError:
        return None
