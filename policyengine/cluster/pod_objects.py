"""Pods as the API sends them: only the fields that scheduling, or a policy, reads.

All structs are immutable trees without cycles, so the collector need not track them (`gc=False`).
Field documentation: the Kubernetes API reference, core/v1 Pod.
"""

from __future__ import annotations

import msgspec

from policyengine.cluster.node_objects import NodeSelector, NodeSelectorTerm
from policyengine.cluster.objects import Int64, LabelSelector, ObjectMeta, Quantities, Resources, Wire
from policyengine.cluster.storage_objects import Volume

DEFAULT_SCHEDULER_NAME = "default-scheduler"
"""Who serves pods that name nobody: kube-scheduler, wherever Kubernetes runs."""


class ContainerPort(Wire, frozen=True):
    """A port; `host_port` 0 means none is taken on the node."""

    container_port: Int64 = 0
    host_port: Int64 = 0
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
    toleration_seconds: Int64 | None = None


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
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    priority: Int64 | None = None
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
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(Wire, frozen=True):
    """A condition; `last_transition_time` is RFC 3339."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 = 0


class TerminatedState(Wire, frozen=True):
    """How a container ended."""

    exit_code: Int64 = 0
    reason: str = ""
    finished_at: str | None = None


class ContainerState(Wire, frozen=True):
    """Only the end is read."""

    terminated: TerminatedState | None = None


class ContainerStatus(Wire, frozen=True):
    """What runs: `resources` is what the runtime applied, `allocated_resources` what the kubelet set aside."""

    name: str = ""
    restart_count: Int64 = 0
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


class Pod(Wire, frozen=True):
    """A pod as decoded."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PreferredSchedulingTerm(Wire, frozen=True):
    """A term and what matching it is worth, 1..100."""

    weight: Int64
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Required and preferred node terms."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Wire, frozen=True):
    """Pods to be near to, or away from, within one value of `topology_key`.

    A `label_selector` of None matches no pod. A `namespace_selector` of None adds no namespace, an empty one all.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A term and what it is worth, 1..100."""

    weight: Int64
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Required and preferred terms: near to these pods or, of anti-affinity, away from them."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Wire, frozen=True):
    """Node affinity, pod affinity, pod anti-affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """How unevenly matching pods may be spread over the values of `topology_key`."""

    max_skew: Int64 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: Int64 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
