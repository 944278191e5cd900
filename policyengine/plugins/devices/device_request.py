"""The requests of a claim, made ready for the search: alternatives, selectors, classes.

Source: KEP-4381 and, for alternatives, KEP-4816 (prioritized list).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from policyengine.cluster.device_objects import (
    DeviceAttribute,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from policyengine.cluster.view import Snapshot
from policyengine.framework.status import Code, Status
from policyengine.plugins.devices.device import NOTHING, Consumption, Reading, SelectorError, SliceDevice, consumption
from policyengine.plugins.selectors.tolerations import tolerates

ALL, EXACT_COUNT = "All", "ExactCount"
MOST_RESULTS: Final = 32
"""Devices that one claim can be given (AllocationResultsMaxSize)."""


class AllocationError(Exception):
    """A claim, a class or a slice is wrong, so that its allocation cannot even be tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """One way to satisfy a request: `count` devices, or all of them, that meet every selector."""

    claim: str
    """The claim, as `namespace/name`."""
    request: str
    """The request's name."""
    alternative: str
    """The name of the alternative; "" where there is none."""
    device_class: DeviceClass
    source: ExactDeviceRequest | DeviceSubRequest

    @property
    def name(self) -> str:
        """How results name it: `request`, or `request/alternative`."""
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def own_name(self) -> str:
        """How errors name it."""
        return self.alternative or self.request

    @property
    def all_devices(self) -> bool:
        """Whether every device that can be selected is wanted."""
        return self.source.allocation_mode == ALL

    @property
    def admin_access(self) -> bool:
        """Whether devices in use by others will do (KEP-5018)."""
        return isinstance(self.source, ExactDeviceRequest) and self.source.admin_access

    def selects(self, device: SliceDevice, read: Reading) -> bool:
        """Whether the device meets the selectors of class and request. Adds to `read` what that depends on.

        Raises:
            AllocationError: a selector has no answer.
        """
        of_class = self.device_class
        if not _all_met(f"class {of_class.metadata.name}", of_class.spec.selectors, device, read):
            return False
        return _all_met(f"claim {self.claim}", self.source.selectors, device, read)

    def tolerates(self, device: SliceDevice) -> bool:
        """Whether no taint keeps the device from this request."""
        return all(tolerates(self.source.tolerations, taint) for taint in device.preventing)

    def consumes(self, device: SliceDevice) -> Consumption | None:
        """What it takes of the device's capacities; None where the device cannot give that."""
        requests = self.source.capacity.requests
        if not requests and not device.device.allow_multiple_allocations:
            return NOTHING
        return consumption(device.device, requests)


def _all_met(whose: str, selectors: Sequence[DeviceSelector], device: SliceDevice, read: Reading) -> bool:
    for place, selector in enumerate(selectors):
        try:
            if selector.cel is not None and not device.meets(selector.cel.expression, read):
                return False
        except SelectorError as error:
            raise AllocationError(f"{whose}: selector #{place}: {error}") from None
    return True


@dataclass(frozen=True, slots=True, eq=False)
class WantedClaim:
    """A claim to allocate: for each request its alternatives, the best first."""

    claim: ResourceClaim
    requests: tuple[tuple[Wanted, ...], ...]

    def constraints(self, read: set[str]) -> list[Constraint]:
        """The claim's constraints, nothing chosen yet. Adds to `read` the attributes that they compare.

        Raises:
            AllocationError: one is of an unknown kind.
        """
        made: list[Constraint] = []
        for place, one in enumerate(self.claim.spec.devices.constraints):
            attribute = one.match_attribute if one.match_attribute is not None else one.distinct_attribute
            if attribute is None:
                what = f"constraint #{place}: empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {self.claim.metadata.key}, {what}")
            read.update((attribute, attribute.partition("/")[2]))
            made.append(Constraint(attribute, frozenset(one.requests), one.match_attribute is None))
        return made


def wanted_claim(claim: ResourceClaim, snapshot: Snapshot) -> WantedClaim | Status:
    """The claim made ready; or why it cannot be allocated anywhere."""
    requests: list[tuple[Wanted, ...]] = []
    for request in claim.spec.devices.requests:
        made = _alternatives(claim, request, snapshot)
        if isinstance(made, Status):
            return made
        requests.append(made)
    return WantedClaim(claim, tuple(requests))


def _alternatives(claim: ResourceClaim, request: DeviceRequest, snapshot: Snapshot) -> tuple[Wanted, ...] | Status:
    key = claim.metadata.key
    ways: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = []
    if request.exactly is not None:
        ways.append(("", request.exactly))
    else:
        ways += [(sub.name, sub) for sub in request.first_available]
    if not ways:
        reason = f"resource claim {key}, request {request.name}: unknown request type"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    made: list[Wanted] = []
    for alternative, source in ways:
        name = f"{request.name}/{alternative}" if alternative else request.name
        if not source.device_class_name:
            return Status(Code.ERROR, (f"request {name}: unsupported request type",))
        device_class = snapshot.objects(DeviceClass).get(source.device_class_name)
        if device_class is None:
            reason = f"request {name}: device class {source.device_class_name} does not exist"
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
        made.append(Wanted(key, request.name, alternative, device_class, source))
    wrong = next((problem for one in made if (problem := _problem(one)) is not None), None)
    return tuple(made) if wrong is None else Status(Code.ERROR, (wrong,))


def _problem(wanted: Wanted) -> str | None:
    place = next((place for place, one in enumerate(wanted.source.selectors) if one.cel is None), None)
    where = f"claim {wanted.claim}, request {wanted.own_name}"
    if place is not None:
        return f"{where}, selector #{place}: CEL expression empty (unsupported selector type?)"
    if wanted.source.allocation_mode not in (ALL, EXACT_COUNT):
        return f"{where}: unsupported count mode {wanted.source.allocation_mode}"
    if wanted.source.count < 1 and not wanted.all_devices:
        return f"{where}: a count of {wanted.source.count} asks for nothing"
    return None


class Constraint:
    """What devices of some requests must have in common (`matchAttribute`) or must not (`distinctAttribute`).

    A device without the attribute is never allowed. `distinctAttribute` compares with the device chosen last for each
    request, and with none where that one was given up (constraint.go, v1.36).
    """

    def __init__(self, attribute: str, requests: frozenset[str], distinct: bool) -> None:
        """`attribute`: fully qualified. `requests`: names, `request/alternative` included; none means all requests."""
        self._attribute = attribute
        self._requests = requests
        self._count = 0
        self._last: dict[str, DeviceAttribute] = {}
        self.forgets = distinct
        """Whether what is allowed depends on what was tried before, too."""

    def allows(self, wanted: Wanted, device: SliceDevice) -> bool:
        """Whether the device may be added for a request."""
        if not self._concerns(wanted):
            return True
        attribute = device.attribute(self._attribute)
        if attribute is None or attribute == DeviceAttribute():  # no value, or one of an unknown type
            return False
        return not self._count or (attribute in self._last.values()) != self.forgets

    def add(self, wanted: Wanted, device: SliceDevice) -> None:
        """The device, which is allowed, was chosen."""
        attribute = device.attribute(self._attribute)
        if attribute is not None and self._concerns(wanted):
            self._count += 1
            self._last[wanted.request if self.forgets else ""] = attribute

    def remove(self, wanted: Wanted) -> None:
        """The device chosen last was given up."""
        if self._concerns(wanted):
            self._count -= 1
            self.forget(wanted)

    def forget(self, wanted: Wanted) -> None:
        """The device chosen last for the request is compared with no more."""
        if self.forgets and self._concerns(wanted):
            self._last.pop(wanted.request, None)

    def _concerns(self, wanted: Wanted) -> bool:
        return not self._requests or wanted.request in self._requests or wanted.name in self._requests
