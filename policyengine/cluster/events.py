"""What happened in the cluster, as kube-scheduler names it: `ClusterEvent` and its parts.

`ClusterView` reports changes in these words; the framework adds the registrations and hints of plugins to them
(`framework.events`). Names as in kube-scheduler's framework/types.go, v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, Flag, auto

from policyengine.enum_members import direct_members


@direct_members
class Resource(Enum):
    """The kinds of object whose changes can matter to a rejected pod."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    SERVICE = "Service"
    POD_GROUP = "PodGroup"
    FINISHED_POD = "FinishedPod"
    """Not kube-scheduler's: a pod that ended on a node, for rules that read `node.finished`."""
    TIME = "Time"
    """Not kube-scheduler's: a minute passed, for rules that read `now` or `cluster`."""
    WILDCARD = "*"


@direct_members
class ActionType(Flag):
    """What happened to the object."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_ANNOTATION = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_OTHER = auto()

    UPDATE_NODE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
    )
    UPDATE_POD = (
        UPDATE_POD_LABEL
        | UPDATE_POD_ANNOTATION
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    UPDATE = UPDATE_NODE | UPDATE_POD | UPDATE_OTHER
    ALL = ADD | DELETE | UPDATE


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A kind of change; the label is what metrics and timelines show (`NodeAdd`, `AssignedPodDelete`)."""

    resource: Resource
    action: ActionType
    label: str = ""
    is_add: bool = field(init=False, repr=False, compare=False)
    is_delete: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked of every event of every pod, and slow to ask of a Flag.
        object.__setattr__(self, "is_add", bool(self.action & ActionType.ADD))
        object.__setattr__(self, "is_delete", bool(self.action & ActionType.DELETE))
        object.__setattr__(self, "_hash", hash((self.resource, self.action, self.label)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, other: ClusterEvent) -> bool:
        """Whether a registration for `self` covers the event `other`.

        `POD` covers assigned and unscheduled pods alike; `*` covers everything.
        """
        if self.resource is Resource.WILDCARD:
            return True
        if self.resource is Resource.POD:
            if other.resource not in _PODS:
                return False
        elif self.resource is not other.resource:
            return False
        return bool(self.action & other.action)


_PODS = frozenset({Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD})


NODE_ADD = ClusterEvent(Resource.NODE, ActionType.ADD, "NodeAdd")
NODE_DELETE = ClusterEvent(Resource.NODE, ActionType.DELETE, "NodeDelete")
ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD, "AssignedPodAdd")
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, ActionType.DELETE, "AssignedPodDelete")
UNSCHEDULED_POD_ADD = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.ADD, "UnschedulablePodAdd")
UNSCHEDULED_POD_DELETE = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.DELETE, "UnschedulablePodDelete")
UNSCHEDULED_POD_UPDATE = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.UPDATE_OTHER, "UnschedulablePodUpdate")
FINISHED_POD_ADD = ClusterEvent(Resource.FINISHED_POD, ActionType.ADD, "FinishedPodAdd")
WILDCARD = ClusterEvent(Resource.WILDCARD, ActionType.ALL, "Wildcard")
"""Registered by a plugin that cannot tell what would cure its rejection."""
MINUTE_PASSED = ClusterEvent(Resource.TIME, ActionType.UPDATE_OTHER, "MinutePassed")
"""A minute began; matches only the registrations of rules whose verdict changes with time."""
FLUSH = ClusterEvent(Resource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
"""The periodic look at pods that waited too long; matches every registration's pod."""
POLICY_REPLACED = ClusterEvent(Resource.WILDCARD, ActionType.ALL, "PolicyReplaced")
"""A new profile took over: pods whose refusing rule changed are asked again."""
