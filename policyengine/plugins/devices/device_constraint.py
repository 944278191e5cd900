"""What the devices of a claim must have in common, or must not: `matchAttribute`, `distinctAttribute`.

Both are monotonic: where a device cannot be added, it cannot be after others were added. A device without the
attribute is never added.
"""

from __future__ import annotations

from policyengine.cluster.resource_objects import DeviceAttribute
from policyengine.plugins.devices.device import SliceDevice


class _Constraint:
    """Over the devices of some requests; all of the claim's where none is named."""

    __slots__ = ("_attribute", "_chosen", "_requests")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        """`attribute`: fully qualified. `requests`: names, `request/alternative` included."""
        self._attribute = attribute
        self._requests = requests
        self._chosen: list[DeviceAttribute] = []

    def allows(self, request: str, name: str, device: SliceDevice) -> bool:
        """Whether the device may be added for a request. `name`: with its alternative."""
        if not self._concerns(request, name):
            return True
        attribute = device.attribute(self._attribute)
        return attribute is not None and _is_known(attribute) and self._agrees(attribute)

    def add(self, request: str, name: str, device: SliceDevice) -> None:
        """The device, which is allowed, was chosen."""
        attribute = device.attribute(self._attribute)
        if attribute is not None and self._concerns(request, name):
            self._chosen.append(attribute)

    def remove(self, request: str, name: str) -> None:
        """The device chosen last was given up."""
        if self._concerns(request, name):
            self._chosen.pop()

    def _concerns(self, request: str, name: str) -> bool:
        return not self._requests or request in self._requests or name in self._requests

    def _agrees(self, attribute: DeviceAttribute) -> bool:
        raise AssertionError("a constraint says what agrees")


class MatchAttribute(_Constraint):
    """All devices have one value."""

    __slots__ = ()

    def _agrees(self, attribute: DeviceAttribute) -> bool:
        return not self._chosen or self._chosen[0] == attribute


class DistinctAttribute(_Constraint):
    """No two devices have one value."""

    __slots__ = ()

    def _agrees(self, attribute: DeviceAttribute) -> bool:
        return attribute not in self._chosen


def _is_known(attribute: DeviceAttribute) -> bool:
    """Whether the attribute has a value of a type known here."""
    return attribute != DeviceAttribute()
