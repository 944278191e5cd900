"""Where each field stands: of the decision (`pod.priority`, `now`) and of things (`container.image`, `taint.key`).

The schema says which fields exist and of what type; this table says where each stands in the decoded object. An
absent optional field is None. Lists are tuples, maps are dicts; quantities are ints in their grain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

from policyengine import quantity
from policyengine.cluster import pod_groups
from policyengine.cluster.objects import Quantities
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_requests import Requests
from policyengine.cluster.view import Snapshot
from policyengine.cluster.workload_objects import PodGroup
from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.language.schema import NAMED_GROUPS, PLACED, QOS_CLASSES
from policyengine.language.values import INT64_MAX, EvaluationError, parse_timestamp
from policyengine.quantity import QuantityError

Getter = Callable[[Any], Any]
Path = tuple[str, ...]
_NANO = 10**9
_NO_TEXTS: Mapping[str, str] = {}


def nanoseconds(seconds: float | None) -> int | None:
    """Epoch seconds as a timestamp."""
    return None if seconds is None else round(seconds * _NANO)


@dataclass(slots=True)
class Amounts:
    """Resource amounts with the fields `cpu memory storage`, and counts by name: `requests`, `limits`, `free`, …

    The three fields are None where a limit is not set.
    """

    cpu: int | None
    memory: int | None
    storage: int | None
    scalars: Mapping[str, int]

    def __hash__(self) -> int:
        return hash((self.cpu, self.memory, self.storage, tuple(sorted(self.scalars.items()))))


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
    found = {name: _amount(text, name == "cpu") for name, text in quantities.items()}
    known = {name: amount for name, amount in found.items() if amount is not None}
    cpu, memory, storage = (known.pop(name, None) for name in ("cpu", "memory", "ephemeral-storage"))
    return Amounts(cpu, memory, storage, known)


def _pod_group_name(pod: PodInfo) -> str | None:
    named = pod_groups.named_by(pod)
    return None if named is None else named[1].partition("/")[2]


def _of_namespace(part: str) -> Getter:
    """`labels` or `annotations` of the pod's namespace."""
    return lambda pod: _NO_TEXTS if pod.home is None else getattr(pod.home.metadata, part)


def _fields(*plain: str, **others: Getter) -> dict[str, Getter]:
    """Getters by the schema's names: `plain` ones stand in the attribute of the same name, in lower case with `_`."""
    named = {name: attrgetter(re.sub("([A-Z]+)", r"_\1", name).lower()) for name in plain}
    return {**named, **others}


POD_FIELDS: dict[str, Getter] = _fields(
    *("name", "namespace", "uid", "labels", "annotations", "priority", "owner", "restarts"),
    namespaceLabels=_of_namespace("labels"),
    namespaceAnnotations=_of_namespace("annotations"),
    requests=lambda pod: requested(pod.shape.requests),
    limits=lambda pod: limited(pod.shape.limits),
    qos=lambda pod: QOS_CLASSES.index(pod.shape.qos),
    priorityClass=attrgetter("shape.spec.priority_class_name"),
    nodeSelector=attrgetter("shape.spec.node_selector"),
    tolerations=attrgetter("shape.spec.tolerations"),
    containers=attrgetter("shape.spec.containers"),
    initContainers=attrgetter("shape.spec.init_containers"),
    images=attrgetter("shape.images"),
    volumes=attrgetter("shape.spec.volumes"),
    serviceAccount=attrgetter("shape.spec.service_account_name"),
    createdAt=lambda pod: nanoseconds(pod.created_at),
    podGroup=_pod_group_name,
    node=attrgetter("node_name"),
    scheduledAt=lambda pod: nanoseconds(pod.scheduled_at),
    startedAt=lambda pod: nanoseconds(pod.started_at),
    terminating=attrgetter("deleting"),
)
"""Every field of a pod that the pod itself knows; the queue knows `queuedAt` and `attempts`."""

POD_PATHS: dict[Path, Getter] = {
    ("requests", "cpu"): attrgetter("shape.requests.cpu"),
    ("requests", "memory"): attrgetter("shape.requests.memory"),
    ("requests", "storage"): attrgetter("shape.requests.ephemeral_storage"),
    **{(name,): getter for name, getter in POD_FIELDS.items()},
}
"""Fields by path; the paths of two names are short cuts."""

_BY_OBJECT: dict[str, dict[str, Getter]] = {
    "clusterPod": POD_FIELDS,
    "pod": POD_FIELDS,
    **dict.fromkeys(("resources", "limits", "demand"), _fields("cpu", "memory", "storage")),
    "history": _fields("count", "mean", "stddev", "moments"),
    "container": _fields(
        *("name", "image", "ports"),
        requests=lambda container: amounts_of(container.resources.requests),
        limits=lambda container: amounts_of(container.resources.limits),
    ),
    "port": _fields("name", "containerPort", "hostPort", "hostIP", protocol=lambda port: port.protocol or "TCP"),
    "toleration": _fields("key", "value", "effect", operator=lambda toleration: toleration.operator or "Equal"),
    "taint": _fields("key", "value", "effect"),
    "condition": _fields("type", "status", "reason"),
    "gang": _fields("key", "size", "reserved", "bound", "min"),
    "finishedPod": _fields("owner", "failed", "reason", finishedAt=lambda pod: nanoseconds(pod.finished_at)),
    "podGroup": _fields(
        name=attrgetter("metadata.name"),
        minMember=lambda group: group.spec.min_member if isinstance(group, PodGroup) else group.minimum,
        scheduleTimeout=lambda group: nanoseconds(getattr(group.spec, "schedule_timeout_seconds", None)),
        minResources=lambda group: amounts_of(getattr(group.spec, "min_resources", {})),
    ),
    "owner": _fields("kind", "name", "uid"),
    "volume": _fields("name", claim=lambda volume: getattr(volume.persistent_volume_claim, "claim_name", None)),
}


def field_getter(owner: str, name: str) -> Getter:
    """How a field of an object is read, by the names the schema has for both. KeyError: no such field."""
    return _BY_OBJECT[owner][name]


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
    NAMED_GROUPS: lambda decision: _snapshot(decision).pod_groups,
    PLACED: lambda decision: _snapshot(decision).demand,
    ("now",): lambda decision: _snapshot(decision).now * _NANO,
    ("podGroup",): lambda decision: decision.pod.group,
    ("cluster", "nodeCount"): lambda decision: _snapshot(decision).nodes.n,
    ("cluster", "podCount"): lambda decision: len(_snapshot(decision).pods),
    ("cluster", "pendingCount"): lambda decision: _snapshot(decision).pending_count,
}


def _snapshot(decision: Decision) -> Snapshot:
    if decision.snapshot is None:
        raise EvaluationError("the cluster is not known here")
    return decision.snapshot
