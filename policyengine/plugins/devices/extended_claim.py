"""The special claim: a pod's extended resources that device classes stand for, as requests for devices (KEP-5004).

Source: extendeddynamicresources.go, v1.36. A node whose allocatable has some of a resource gives it by a device
plugin; elsewhere it is asked for in one claim that the scheduler makes in PreBind. So the claim's requests differ from
node to node. A request is named after its container and after the resource's place among what the container asks for:
1. Containers that live on ask each for their own devices.
2. An init container that ends uses those of the containers that start after it, and asks only for what these lack; of
   several such the largest request serves all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from policyengine import quantity
from policyengine.cluster.allocatable import allocatable_of
from policyengine.cluster.device_objects import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectMeta, OwnerReference
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Container
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import Status
from policyengine.plugins.devices.device_request import WantedClaim, wanted_claim
from policyengine.plugins.extended_resources import IMPLICIT, backed_resources
from policyengine.quantity import QuantityError

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY: Final = "<extended-resources>"
"""The claim's name until it is made."""
_ALWAYS: Final = "Always"
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_LONGEST_BASE: Final = 58
"""Characters of a generated name before its random end."""


class Asking(NamedTuple):
    """What one container asks for."""

    container: int
    """Its place, init containers first."""
    name: str
    ends: bool
    """Whether it is an init container that ends before the others start."""
    amounts: tuple[tuple[str, int, int], ...]
    """(extended resource, amount above 0, the resource's place among all that the container asks for)."""


class ContainerRequest(NamedTuple):
    """Which request gives a container its resource."""

    container: str
    resource: str
    request: str


class Requests(NamedTuple):
    """What is asked of a node's devices."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerRequest, ...]


def asked_by(shape: PodShape) -> tuple[Asking, ...]:
    """The containers that ask for extended resources, which a class may stand for."""
    return _asked_by(shape) if shape.requests.scalars else ()


@lru_cache(maxsize=1024)
def _asked_by(shape: PodShape) -> tuple[Asking, ...]:
    if not any(amount and _is_extended(name) for name, amount in shape.requests.scalars.items()):
        return ()
    inits = shape.spec.init_containers
    everyone = (*inits, *shape.spec.containers)
    asking = (_asking(place, one, place < len(inits)) for place, one in enumerate(everyone))
    return tuple(one for one in asking if one.amounts)


def _asking(place: int, container: Container, is_init: bool) -> Asking:
    amounts = []
    for index, (name, text) in enumerate(sorted(container.resources.requests.items())):
        amount = _whole(text) if _is_extended(name) else 0
        if amount:
            amounts.append((name, amount, index))
    return Asking(place, container.name, is_init and container.restart_policy != _ALWAYS, tuple(amounts))


def _is_extended(name: str) -> bool:
    return name.startswith(IMPLICIT) or ("/" in name and _NATIVE_DOMAIN not in name)


def _whole(text: str | int | float) -> int:
    try:
        return quantity.value(text)
    except QuantityError:
        return 0


class ExtendedResources:
    """What a pod asks for by its extended resources; false where no class stands for any of it."""

    def __init__(self, pod: PodInfo, snapshot: Snapshot) -> None:
        self._asking = asked_by(pod.shape)
        names = {name for one in self._asking for name, _, _ in one.amounts}
        backed = backed_resources(snapshot.objects(DeviceClass)) if names else {}
        self._backed = {name: backed[name] for name in sorted(names & backed.keys())}
        self._others = names - backed.keys()
        self._namespace, self._snapshot = pod.namespace, snapshot
        self._asked: dict[frozenset[str], tuple[Requests, WantedClaim | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._backed)

    def cannot_fit(self, node: Node) -> bool:
        """Whether neither a device plugin of the node nor a class has one of the resources."""
        return bool(self._backed and self._others) and not allocatable_of(node).amounts.keys() >= self._others

    def on(self, node: Node) -> Requests:
        """What is asked of the node's slices; no request where device plugins give all."""
        return self._asked_of(node)[0]

    def claim(self, node: Node) -> WantedClaim | None:
        """The special claim as the node is asked about it; None where its device plugins give all."""
        return self._asked_of(node)[1]

    def _asked_of(self, node: Node) -> tuple[Requests, WantedClaim | None]:
        offered = allocatable_of(node).amounts
        wanted = frozenset(name for name in self._backed if not offered.get(name))
        if wanted not in self._asked:
            asked = self._asked_for(wanted)
            claim = in_memory(self._namespace, asked.requests)
            made = wanted_claim(claim, self._snapshot) if asked.requests else None
            self._asked[wanted] = asked, None if isinstance(made, Status) else made
        return self._asked[wanted]

    def _asked_for(self, wanted: frozenset[str]) -> Requests:
        requests: list[DeviceRequest] = []
        mappings: list[ContainerRequest] = []
        for resource, device_class in self._backed.items():
            if resource in wanted:
                made = _of_one(self._asking, resource, device_class.metadata.name)
                requests += made.requests
                mappings += made.mappings
        return Requests(tuple(sorted(requests, key=lambda one: one.name)), tuple(mappings))


def _of_one(asking: Iterable[Asking], resource: str, device_class: str) -> Requests:
    """The requests and mappings for one resource: those of containers that live on, then of those that end."""
    amounts = [
        (one, amount, f"container-{one.container}-request-{place}")
        for one in asking
        for name, amount, place in one.amounts
        if name == resource
    ]
    lasting = [(one, amount, name) for one, amount, name in amounts if not one.ends]
    mappings = [ContainerRequest(one.name, resource, name) for one, _, name in lasting]
    largest: tuple[int, str] | None = None
    own: list[tuple[str, str]] = []
    for one, amount, name in (each for each in amounts if each[0].ends):
        for later, given, request in lasting:
            if amount > 0 and later.container > one.container:
                own.append((one.name, request))
                amount -= given
        if amount > 0:
            own.append((one.name, ""))
            if largest is None or amount > largest[0]:
                largest = (amount, name)
    mappings += [ContainerRequest(name, resource, request or (largest or (0, ""))[1]) for name, request in own]
    requests = [_request(name, device_class, amount) for _, amount, name in lasting]
    if largest is not None:
        requests.append(_request(largest[1], device_class, largest[0]))
    return Requests(tuple(requests), tuple(mappings))


def _request(name: str, device_class: str, count: int) -> DeviceRequest:
    return DeviceRequest(name=name, exactly=ExactDeviceRequest(device_class_name=device_class, count=count))


def in_memory(namespace: str, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    """The claim as nodes are asked about it, of whichever pod."""
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=requests))
    return ResourceClaim(metadata=ObjectMeta(name=IN_MEMORY, namespace=namespace), spec=spec)


def special_claim(pod: PodInfo, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    """The claim to be made for a pod. Its name follows from the pod's, so that one whose making was not answered is
    found again; until it is made the name stands for its UID too."""
    drawn = blake2b(pod.uid.encode(), digest_size=3).hexdigest()[:5]
    name = f"{f'{pod.name}-extended-resources-'[:_LONGEST_BASE]}{drawn}"
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    claim = in_memory(pod.namespace, requests)
    meta = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        uid=f"{pod.namespace}/{name}",
        annotations={ANNOTATION: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=meta, spec=claim.spec)


def claim_of(pod: PodInfo, claim: ResourceClaim) -> ResourceClaim:
    """The claim itself, unless it is the special one as in memory: then the pod's."""
    return special_claim(pod, claim.spec.devices.requests) if claim.metadata.name == IN_MEMORY else claim


def is_made(claim: ResourceClaim) -> bool:
    """Whether the server knows the claim."""
    return claim.metadata.uid != claim.metadata.key


def is_special_of(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether a scheduler made the claim, or is to make it, for the pod's extended resources."""
    owner = claim.metadata.controller
    is_special = claim.metadata.annotations.get(ANNOTATION) == "true"
    return is_special and owner is not None and owner.uid == pod.uid
