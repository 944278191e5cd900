"""Where each field stands: of the decision (`pod.priority`, `now`) and of things (`container.image`, `taint.key`).

The schema says which fields exist and of what type; this table says where each stands in the decoded object. An
absent optional field is None. Lists are tuples, maps are dicts; quantities are ints in their grain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from policyengine import quantity
from policyengine.cluster.objects import Quantities, parse_time
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.requests import Requests
from policyengine.cluster.view import Snapshot
from policyengine.cluster.workload_objects import NativePodGroup, PodGroup
from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.language.schema import QOS_CLASSES
from policyengine.language.values import INT64_MAX, EvaluationError, parse_timestamp
from policyengine.quantity import QuantityError

Getter = Callable[[Any], Any]
Path = tuple[str, ...]
_NANO = 10**9


def nanoseconds(seconds: float | None) -> int | None:
    """Epoch seconds as a timestamp."""
    return None if seconds is None else round(seconds * _NANO)


def timestamp(text: str | None) -> int | None:
    """RFC 3339 text as a timestamp."""
    return nanoseconds(parse_time(text))


class Amounts:
    """Resource amounts with the fields `cpu memory storage`, and counts by name: `requests`, `limits`, `free`, …

    `scalars` are the counts; the three fields are None where a limit is not set.
    """

    __slots__ = ("cpu", "memory", "scalars", "storage")

    def __init__(self, cpu: int | None, memory: int | None, storage: int | None, scalars: Mapping[str, int]) -> None:
        self.cpu, self.memory, self.storage = cpu, memory, storage
        self.scalars = scalars

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amounts) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.cpu, self.memory, self.storage, tuple(sorted(self.scalars.items()))


def requested(requests: Requests) -> Amounts:
    """A pod's requests: 0 where unset."""
    return Amounts(requests.cpu, requests.memory, requests.ephemeral_storage, requests.scalars)


def limited(limits: Requests) -> Amounts:
    """A pod's limits: absent where unset (a limit of 0 counts as unset, as the kubelet takes it)."""
    return Amounts(limits.cpu or None, limits.memory or None, limits.ephemeral_storage or None, limits.scalars)


@lru_cache(maxsize=4096)
def _amount(text: str | int | float, milli: bool) -> int | None:
    try:
        return quantity.milli_value(text) if milli else quantity.value(text)
    except QuantityError:
        return None


def amount(text: str, *, milli: bool) -> int | None:
    """A quantity in millicores or bytes; None where it cannot be read, or is negative."""
    found = _amount(text, milli)
    return found if found is not None and 0 <= found <= INT64_MAX else None


def moment(text: str) -> int | None:
    """RFC 3339 text as a timestamp; None where it cannot be read."""
    try:
        return parse_timestamp(text)
    except EvaluationError:
        return None


def amounts_of(quantities: Quantities) -> Amounts:
    """A resource list as written; what cannot be read is absent."""
    plain = {"cpu", "memory", "ephemeral-storage"}
    scalars = {name: _amount(text, False) for name, text in quantities.items() if name not in plain}
    return Amounts(
        _amount(quantities["cpu"], True) if "cpu" in quantities else None,
        _amount(quantities["memory"], False) if "memory" in quantities else None,
        _amount(quantities["ephemeral-storage"], False) if "ephemeral-storage" in quantities else None,
        {name: amount for name, amount in scalars.items() if amount is not None},
    )


def _pod_group_name(pod: PodInfo) -> str | None:
    group = pod.shape.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return group.pod_group_name
    return pod.labels.get("scheduling.x-k8s.io/pod-group")


def _min_member(group: PodGroup | NativePodGroup) -> int:
    """How many pods it takes; 1 for a native group that is no gang."""
    if isinstance(group, PodGroup):
        return group.spec.min_member
    gang = group.spec.scheduling_policy.gang
    return 1 if gang is None else gang.min_count


POD_FIELDS: dict[str, Getter] = {
    "name": lambda pod: pod.name,
    "namespace": lambda pod: pod.namespace,
    "uid": lambda pod: pod.uid,
    "labels": lambda pod: pod.labels,
    "annotations": lambda pod: pod.annotations,
    "requests": lambda pod: requested(pod.shape.requests),
    "limits": lambda pod: limited(pod.shape.limits),
    "qos": lambda pod: QOS_CLASSES.index(pod.shape.qos),
    "priority": lambda pod: pod.priority,
    "priorityClass": lambda pod: pod.shape.spec.priority_class_name,
    "nodeSelector": lambda pod: pod.shape.spec.node_selector,
    "tolerations": lambda pod: pod.shape.spec.tolerations,
    "containers": lambda pod: pod.shape.spec.containers,
    "initContainers": lambda pod: pod.shape.spec.init_containers,
    "images": lambda pod: pod.shape.images,
    "volumes": lambda pod: pod.shape.spec.volumes,
    "owner": lambda pod: pod.owner,
    "serviceAccount": lambda pod: pod.shape.spec.service_account_name,
    "createdAt": lambda pod: nanoseconds(pod.created_at),
    "podGroup": _pod_group_name,
    "node": lambda pod: pod.node_name,
    "scheduledAt": lambda pod: nanoseconds(pod.scheduled_at),
    "startedAt": lambda pod: nanoseconds(pod.started_at),
    "terminating": lambda pod: pod.deleting,
    "restarts": lambda pod: pod.restarts,
}
"""Every field of a pod that the pod itself knows; the queue knows `queuedAt` and `attempts`."""

POD_PATHS: dict[tuple[str, ...], Getter] = {
    ("requests", "cpu"): lambda pod: pod.shape.requests.cpu,
    ("requests", "memory"): lambda pod: pod.shape.requests.memory,
    ("requests", "storage"): lambda pod: pod.shape.requests.ephemeral_storage,
    **{(name,): getter for name, getter in POD_FIELDS.items()},
}
"""Fields by path; the paths of two names are short cuts."""

_AMOUNTS: dict[str, Getter] = {
    "cpu": lambda amounts: amounts.cpu,
    "memory": lambda amounts: amounts.memory,
    "storage": lambda amounts: amounts.storage,
}

_BY_OBJECT: dict[str, dict[str, Getter]] = {
    "clusterPod": POD_FIELDS,
    "pod": POD_FIELDS,
    "resources": _AMOUNTS,
    "limits": _AMOUNTS,
    "container": {
        "name": lambda container: container.name,
        "image": lambda container: container.image,
        "requests": lambda container: amounts_of(container.resources.requests),
        "limits": lambda container: amounts_of(container.resources.limits),
        "ports": lambda container: container.ports,
    },
    "port": {
        "name": lambda port: port.name,
        "containerPort": lambda port: port.container_port,
        "hostPort": lambda port: port.host_port,
        "hostIP": lambda port: port.host_ip,
        "protocol": lambda port: port.protocol or "TCP",
    },
    "toleration": {
        "key": lambda toleration: toleration.key,
        "operator": lambda toleration: toleration.operator or "Equal",
        "value": lambda toleration: toleration.value,
        "effect": lambda toleration: toleration.effect,
    },
    "taint": {
        "key": lambda taint: taint.key,
        "value": lambda taint: taint.value,
        "effect": lambda taint: taint.effect,
    },
    "condition": {
        "type": lambda condition: condition.type,
        "status": lambda condition: condition.status,
        "reason": lambda condition: condition.reason,
    },
    "gang": {
        "key": lambda gang: gang.key,
        "size": lambda gang: gang.size,
        "reserved": lambda gang: gang.reserved,
        "bound": lambda gang: gang.bound,
        "min": lambda gang: gang.min,
    },
    "finishedPod": {
        "owner": lambda pod: pod.owner,
        "failed": lambda pod: pod.failed,
        "reason": lambda pod: pod.reason,
        "finishedAt": lambda pod: nanoseconds(pod.finished_at),
    },
    "podGroup": {
        "name": lambda group: group.metadata.name,
        "minMember": _min_member,
        "scheduleTimeout": lambda group: nanoseconds(getattr(group.spec, "schedule_timeout_seconds", None)),
        "minResources": lambda group: amounts_of(getattr(group.spec, "min_resources", {})),
    },
    "owner": {
        "kind": lambda owner: owner.kind,
        "name": lambda owner: owner.name,
        "uid": lambda owner: owner.uid,
    },
    "volume": {
        "name": lambda volume: volume.name,
        "claim": lambda volume: getattr(volume.persistent_volume_claim, "claim_name", None),
    },
}


def field_getter(owner: str, name: str) -> Getter:
    """How a field of an object is read, by the names the schema has for both. KeyError: no such field."""
    return _BY_OBJECT[owner][name]


def entry(amounts: Amounts, resource: str) -> int | None:
    """`amounts[?"vendor/x"]`: the count, None where the resource is not listed."""
    return amounts.scalars.get(resource)


# --- fields of the decision ------------------------------------------------------------------------------


def scalar_binding(path: Path, policy: Mapping[str, str]) -> Scalar:
    """How a path without a node is read; `policy`: its name and hash. KeyError: the schema and the table disagree."""
    if path[0] == "pod" and path[1:] in POD_PATHS:
        getter = POD_PATHS[path[1:]]
        return lambda decision: getter(decision.pod)
    if path == ("victim",):
        return lambda decision: decision.victim
    if path[0] == "victim":
        of_victim = POD_PATHS[path[1:]]
        return lambda decision: of_victim(decision.victim)
    if path[0] == "policy":
        text = policy[path[1]]
        return lambda decision: text
    return _SCALARS[path]


def _queued(decision: Decision) -> tuple[float, int]:
    """(since when, how often tried before); a pod in no queue waits since it was made, and was never tried."""
    if decision.queued_at is not None:
        return decision.queued_at, decision.attempts
    known = None if decision.snapshot is None else decision.snapshot.scheduling.queued(decision.pod)
    return (decision.pod.created_at, 0) if known is None else known


_SCALARS: dict[Path, Scalar] = {
    ("pod", "queuedAt"): lambda decision: nanoseconds(_queued(decision)[0]) or 0,
    ("pod", "attempts"): lambda decision: _queued(decision)[1],
    ("gang",): lambda decision: _snapshot(decision).scheduling.gang(decision.pod),
    ("pod", "nominee"): lambda decision: decision.pod.uid if decision.pod.nominated_node_name else "",
    ("now",): lambda decision: _now(decision),
    ("podGroup",): lambda decision: decision.pod.group,
    ("cluster", "nodeCount"): lambda decision: _snapshot(decision).nodes.n,
    ("cluster", "podCount"): lambda decision: len(_snapshot(decision).pods),
    ("cluster", "pendingCount"): lambda decision: _snapshot(decision).pending_count,
}


def _now(decision: Decision) -> int:
    return int(_snapshot(decision).now) * 10**9


def _snapshot(decision: Decision) -> Snapshot:
    if decision.snapshot is None:
        raise EvaluationError("the cluster is not known here")
    return decision.snapshot
