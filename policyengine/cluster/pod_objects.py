"""Pods as the API sends them: only the fields that scheduling, or a policy, reads.

All structs are immutable trees without cycles, so the collector need not track them (`gc=False`).
Field documentation: the Kubernetes API reference, core/v1 Pod.
"""

from __future__ import annotations

import msgspec

from policyengine.cluster.affinity_objects import Affinity, TopologySpreadConstraint
from policyengine.cluster.metadata import ObjectMeta, Quantities, Wire
from policyengine.cluster.volume_objects import Volume


class Resources(Wire, frozen=True):
    """A container's or a pod's `resources`. `claims`: names in the pod's `resourceClaims`."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimName, ...] = ()


class ResourceClaimName(Wire, frozen=True):
    """Names an entry of the pod's `resourceClaims`."""

    name: str = ""
    request: str = ""


class ContainerPort(Wire, frozen=True):
    """A port; `host_port` 0 means none is taken on the node."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""
    name: str = ""


class ContainerRestartRule(Wire, frozen=True):
    """What to do when the container ends in some way: Restart, RestartAllContainers."""

    action: str = ""


class Container(Wire, frozen=True):
    """A container; an init container with `restart_policy` Always is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class Toleration(Wire, frozen=True):
    """A toleration; an empty operator means Equal, an empty key with Exists every key."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SchedulingGate(Wire, frozen=True):
    """Holds the pod back until it is removed."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """A claim (DRA) the pod uses: an existing one, or one made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Wire, frozen=True):
    """Membership in a native PodGroup (`scheduling.k8s.io/v1alpha2`)."""

    pod_group_name: str = ""


class PodSpec(Wire, frozen=True):
    """What the pod asks for."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    overhead: Quantities = msgspec.field(default_factory=dict)
    resources: Resources | None = None
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    runtime_class_name: str | None = None
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(Wire, frozen=True):
    """A condition; `last_transition_time` is RFC 3339."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class TerminatedState(Wire, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    finished_at: str | None = None


class ContainerState(Wire, frozen=True):
    """Only the end is read."""

    terminated: TerminatedState | None = None


class ContainerStatus(Wire, frozen=True):
    """What runs: `resources` is what the runtime applied, `allocated_resources` what the kubelet set aside."""

    name: str = ""
    restart_count: int = 0
    resources: Resources | None = None
    allocated_resources: Quantities = msgspec.field(default_factory=dict)
    state: ContainerState | None = None


class PodResourceClaimStatus(Wire, frozen=True):
    """The claim that was made for an entry of the spec's `resourceClaims`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Wire, frozen=True):
    """What has become of the pod."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Resources | None = None
    allocated_resources: Quantities = msgspec.field(default_factory=dict)
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    qos_class: str = ""


class Pod(Wire, frozen=True):
    """A pod as decoded."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
