"""Namespaces, services, owners, budgets, groups, leases, ConfigMaps, SchedulingPolicies, definitions of kinds:
only the fields that are read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import msgspec

from policyengine.cluster.objects import Int64, LabelSelector, ObjectMeta, Quantities, Wire


class Namespace(Wire, frozen=True):
    """A namespace; its labels are what namespace selectors match, and what rules read beside its annotations."""

    metadata: ObjectMeta


class ServiceSpec(Wire, frozen=True):
    """The pods behind a service or of a replication controller, by a plain map; no selector selects none."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class Service(Wire, frozen=True):
    """A service."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Wire, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class SelectorSpec(Wire, frozen=True):
    """The pods that a ReplicaSet or StatefulSet owns, or that a budget protects: without a selector none, with an empty
    one all of the namespace."""

    selector: LabelSelector | None = None


class ReplicaSet(Wire, frozen=True):
    """A replica set."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(ReplicaSet, frozen=True):
    """A stateful set; of what is read it has just what a replica set has."""


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """How many pods may go now, and which are going: name -> time."""

    disruptions_allowed: Int64 = 0
    disrupted_pods: dict[str, str | None] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(Wire, frozen=True):
    """A disruption budget."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ConfigMap(Wire, frozen=True):
    """A ConfigMap, the carrier of policies. What kubectl reads from files that are not UTF-8 is binary data."""

    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)


class ShadowSpec(Wire, frozen=True):
    """How a shadow is tried."""

    sample: int | str | None = None


class CanarySpec(Wire, frozen=True):
    """Which pods a canary decides about."""

    percent: int | str | None = None
    namespace_selector: LabelSelector | None = None


class SchedulingPolicySpec(Wire, frozen=True):
    """Texts by their file names, values of their params, and how they are tried."""

    policies: dict[str, str] = msgspec.field(default_factory=dict)
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    mode: str = "Serve"
    shadow: ShadowSpec = ShadowSpec()
    canary: CanarySpec = CanarySpec()
    budget: dict[str, Any] | None = None


class SchedulingPolicy(Wire, frozen=True):
    """A SchedulingPolicy (`policyengine.io/v1alpha1`), the other carrier of policies."""

    metadata: ObjectMeta
    spec: SchedulingPolicySpec = SchedulingPolicySpec()
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class DefinedVersion(Wire, frozen=True):
    """A version of a kind of one's own."""

    name: str = ""
    served: bool = False


class DefinitionSpec(Wire, frozen=True):
    """The versions of a kind of one's own."""

    versions: tuple[DefinedVersion, ...] = ()


class DefinitionCondition(Wire, frozen=True):
    """`Established` and `True` once the kind is served; its other fields, whatever they hold, are not read."""

    type: str = ""
    status: str = ""


class DefinitionStatus(Wire, frozen=True):
    """What became of a definition."""

    conditions: tuple[DefinitionCondition, ...] = ()


class CustomResourceDefinition(Wire, frozen=True):
    """The definition of a kind of one's own (`apiextensions.k8s.io/v1`)."""

    metadata: ObjectMeta
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()

    def serves(self, versions: Collection[str]) -> bool:
        """Whether the server has taken it over, and it is to stay, in one of these versions."""
        established = DefinitionCondition("Established", "True") in self.status.conditions
        served = any(one.served and one.name in versions for one in self.spec.versions)
        return established and served and self.metadata.deletion_timestamp is None


class Lease(Wire, frozen=True):
    """A leader's lease; a policy's test may give one, and nothing of it is read."""

    metadata: ObjectMeta


class PodGroupSpec(Wire, frozen=True):
    """scheduler-plugins' PodGroup (`scheduling.x-k8s.io/v1alpha1`)."""

    min_member: Int64 = 0
    min_resources: Quantities = msgspec.field(default_factory=dict)
    schedule_timeout_seconds: Int64 | None = None


class PodGroupStatus(Wire, frozen=True):
    """How far the group has come."""

    phase: str = ""
    scheduled: Int64 = 0
    running: Int64 = 0
    succeeded: Int64 = 0
    failed: Int64 = 0


class PodGroup(Wire, frozen=True):
    """A group of pods to be placed together."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class GangPolicy(Wire, frozen=True):
    """All of so many pods or none."""

    min_count: Int64 = 0


class PodGroupSchedulingPolicy(Wire, frozen=True):
    """How the pods of a group are scheduled: as a gang, or (`basic`) each on its own."""

    gang: GangPolicy | None = None


class TopologyConstraint(Wire, frozen=True):
    """The nodes of the group's pods have the same value of a label."""

    key: str = ""


class PodGroupSchedulingConstraints(Wire, frozen=True):
    """Where the pods of a group may stand together; the API takes one constraint."""

    topology: tuple[TopologyConstraint, ...] = ()


class NativePodGroupSpec(Wire, frozen=True):
    """What a controller asks for. An API server leaves out what its gates are off for: so the constraints are there
    with TopologyAwareWorkloadScheduling alone, and a priority with WorkloadAwarePreemption alone, but then always. The
    disruption mode has a default, and so is there without the gate."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints = PodGroupSchedulingConstraints()
    disruption_mode: str | dict[str, object] = ""
    """Pod, or PodGroup: evicted together. 1.37 writes `{single: {}}` and `{all: {}}`."""
    priority: Int64 | None = None


class Condition(Wire, frozen=True):
    """metav1.Condition, whole: the list that it stands in is written back."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: Int64 = 0


class NativePodGroupStatus(Wire, frozen=True):
    """What was observed of the group."""

    conditions: tuple[Condition, ...] = ()


class NativePodGroup(Wire, frozen=True):
    """Kubernetes' own PodGroup (KEP-4671), in `scheduling.k8s.io/v1alpha2` of Kubernetes 1.36."""

    SCHEDULED: ClassVar[str] = "PodGroupScheduled"
    """The condition that tells how its scheduling went."""

    metadata: ObjectMeta
    spec: NativePodGroupSpec = NativePodGroupSpec()
    status: NativePodGroupStatus = NativePodGroupStatus()

    @property
    def minimum(self) -> int:
        """How many of its pods it takes; 1 for a group that is no gang."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(1, gang.min_count)

    @property
    def topology_key(self) -> str:
        """The node label whose values are the domains of which its pods stand in one; "" for anywhere."""
        topology = self.spec.scheduling_constraints.topology
        return topology[0].key if topology else ""


class BetaPodGroup(NativePodGroup, frozen=True):
    """The same in `v1alpha3` and `v1beta1`, of Kubernetes 1.37."""

    SCHEDULED: ClassVar[str] = "PodGroupInitiallyScheduled"
