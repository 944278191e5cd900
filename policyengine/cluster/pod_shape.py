"""`PodShape`: what a pod's spec says, with all that follows from it computed once and shared by equal pods.

Equal immutable values are kept once, which makes fifty thousand pods small. The pools of values are bounded: a full
one starts anew. What is shared stays shared, and only later values find no partner among the earlier ones.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import Final, TypeVar, cast
from weakref import WeakValueDictionary

import msgspec

from policyengine.cluster.pod_objects import Container, PodSpec, PodStatus
from policyengine.cluster.pod_requests import QOSClass, Requests, account, qos_class, resize_infeasible

H = TypeVar("H", bound=Hashable)

POOL_LIMIT = 1 << 14
LONGEST_SCHEDULER_NAME: Final = 318
"""Characters that are kept: one more than any policy serves. The API server takes a mebibyte, and pages and metrics
name the schedulers that pods ask for."""
_LARGE = 16
_EMPTY: dict[str, str] = {}
_maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
_values: dict[Hashable, Hashable] = {}

HostPort = tuple[str, str, int]
"""(host IP, protocol, port); the IP `0.0.0.0` means every IP."""

ANY_IP = "0.0.0.0"

_encode = msgspec.msgpack.Encoder().encode
_NO_STATUS = PodStatus()
_DISKS = attrgetter(
    *("persistent_volume_claim", "ephemeral", "gce_persistent_disk", "aws_elastic_block_store", "azure_disk"),
    *("cinder", "portworx_volume"),
)
"""The sources of a volume that are claims, or disks of a cloud."""
_TOKEN_VOLUME = "kube-api-access-"
"""The service account token's volume: its random name would keep equal pods from sharing a shape."""


class PodShape:
    """Everything a pod's spec says but its node. Never changes; holds no name or label of a pod.

    Interned by `shape_of`: pods whose specs are equal share one object, so its identity may key a cache.
    """

    __slots__ = (
        "__dict__",  # room for what plugins derive with functools.cached_property
        "__weakref__",
        "amounts",
        "concerns_pods",
        "host_ports",
        "images",
        "is_resized",
        "limits",
        "nonzero_cpu",
        "nonzero_memory",
        "problem",
        "qos",
        "requests",
        "spec",
    )

    def __init__(self, spec: PodSpec, status: PodStatus = _NO_STATUS) -> None:
        requests, limits, nonzero_cpu, nonzero_memory, problem = account(spec, status)
        self.spec: Final = spec
        """The spec as decoded; `node_name` is always empty here."""
        self.is_resized: Final = status is not _NO_STATUS
        """Whether an in-place resize makes the pod count for other than its spec says."""
        self.requests: Final[Requests] = requests
        self.limits: Final[Requests] = limits
        self.nonzero_cpu: Final[int] = nonzero_cpu
        """Millicores, where a container without a request counts 100."""
        self.nonzero_memory: Final[int] = nonzero_memory
        """Bytes, where a container without a request counts 200Mi."""
        self.problem: Final[str | None] = problem
        """Why the pod is refused outright, such as a malformed quantity; it counts as what could be read."""
        self.amounts: Final = tuple((name, amount) for name, amount in requests.items() if amount)
        """(resource, amount) of everything above zero: what the pod adds to its node."""
        affinity = spec.affinity
        self.concerns_pods: Final = affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )
        """Whether it may have terms about other pods: pod affinity or anti-affinity."""
        self.host_ports: Final[tuple[HostPort, ...]] = _host_ports(spec)
        self.images: Final[tuple[str, ...]] = _images(spec)
        """Normalised names: init containers', containers', image volumes'; one a use, repetitions kept."""
        self.qos: Final[QOSClass] = qos_class(spec)

    @cached_property
    def disks(self) -> int:
        """How many of its volumes are claims, or disks of a cloud: a node takes only so many of these."""
        return sum([any(source is not None for source in _DISKS(volume)) for volume in self.spec.volumes])


_shapes: WeakValueDictionary[bytes, PodShape] = WeakValueDictionary()


def shape_of(spec: PodSpec, status: PodStatus = _NO_STATUS) -> PodShape:
    """The one shape of all pods with this spec, and with this state of an in-place resize."""
    spec = _without_node(spec)
    resized = _resized(spec, status)
    text = _encode(spec) if resized is None else _encode(spec) + b"\0" + _encode(resized)
    key = blake2b(text, digest_size=20).digest()  # a fraction of the text's size, and no two alike
    shape = _shapes.get(key)
    if shape is None:
        shape = _shapes[key] = PodShape(_compact(spec), resized or _NO_STATUS)
    return shape


def shape_again(known: PodShape, spec: PodSpec, status: PodStatus) -> PodShape:
    """`shape_of` for a pod that had the shape `known` and almost always keeps it: to compare is faster than to find."""
    if known.is_resized or _without_node(spec) != known.spec or _resized(spec, status) is not None:
        return shape_of(spec, status)
    return known


def normalized_image_name(name: str) -> str:
    """The name with a tag: `nginx` is `nginx:latest`, as kube-scheduler's ImageLocality has it."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _without_node(spec: PodSpec) -> PodSpec:
    volumes = spec.volumes
    if volumes:
        volumes = tuple([volume for volume in volumes if not volume.name.startswith(_TOKEN_VOLUME)])
    if spec.node_name or len(volumes) != len(spec.volumes):
        return msgspec.structs.replace(spec, node_name="", volumes=volumes)
    return spec


def _resized(spec: PodSpec, status: PodStatus) -> PodStatus | None:
    """The part of the status that makes the pod count for other than its spec says; None where nothing does."""
    if spec.resources is None and not status.container_statuses and not status.init_container_statuses:
        return None
    statuses = {cs.name: cs for cs in (*status.container_statuses, *status.init_container_statuses)}
    relevant = tuple(
        msgspec.structs.replace(cs, restart_count=0, state=None)
        for container in (*spec.containers, *spec.init_containers)
        if (cs := statuses.get(container.name)) is not None
        and cs.resources is not None
        and not (
            cs.resources.requests == container.resources.requests
            and cs.resources.limits == container.resources.limits
            and cs.allocated_resources in ({}, container.resources.requests)
        )
    )
    pod_level = status.resources if spec.resources is not None else None
    if not relevant and (pod_level is None or pod_level == spec.resources):
        return None
    conditions = tuple(
        msgspec.structs.replace(condition, message="", last_transition_time=None, observed_generation=0)
        for condition in status.conditions
        if condition.type == "PodResizePending" and resize_infeasible(status)
    )
    return PodStatus(
        container_statuses=relevant,
        resources=pod_level,
        allocated_resources=status.allocated_resources if pod_level is not None else {},
        conditions=conditions,
    )


def _compact(spec: PodSpec) -> PodSpec:
    """The same spec, made of parts that other specs have too."""
    return msgspec.structs.replace(
        spec,
        scheduler_name=sys.intern(spec.scheduler_name[:LONGEST_SCHEDULER_NAME]),
        service_account_name=sys.intern(spec.service_account_name),
        tolerations=interned(spec.tolerations),
        node_selector=interned_map(spec.node_selector),
        containers=tuple(_compact_container(container) for container in spec.containers),
    )


def _compact_container(container: Container) -> Container:
    resources = container.resources
    if resources.requests and resources.requests == resources.limits:
        resources = msgspec.structs.replace(resources, limits=resources.requests)
    return msgspec.structs.replace(
        container,
        name=sys.intern(container.name),
        image=sys.intern(container.image),
        ports=interned(container.ports),
        resources=resources,
    )


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Ports of sidecars, then of containers: those in use while the pod runs."""
    running = [container for container in spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", port.host_port)
        for container in (*running, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _images(spec: PodSpec) -> tuple[str, ...]:
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(normalized_image_name(name) for name in names)


def interned(value: H) -> H:
    """The one value equal to this; only for values whose parts are of one type wherever they are equal."""
    if len(_values) >= POOL_LIMIT:
        _values.clear()
    return cast(H, _values.setdefault(value, value))


def interned_map(mapping: dict[str, str]) -> dict[str, str]:
    """The one dict with these entries in this order. Never written to. Large ones are not worth the search."""
    if not mapping:
        return _EMPTY
    if len(mapping) > _LARGE:
        return mapping
    if len(_maps) >= POOL_LIMIT:
        _maps.clear()
    return _maps.setdefault(tuple(mapping.items()), mapping)
