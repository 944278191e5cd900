"""A device of a slice, and which CEL selectors it meets.

What a selector sees (KEP-4381): `device.driver`, `device.allowMultipleAllocations`, `device.attributes[domain].id`,
`device.capacity[domain].id`. A name without a domain belongs to the driver's; an unknown domain is an empty map.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from cachetools import LRUCache

from policyengine.cluster.objects import Device
from policyengine.cluster.resource_objects import DeviceAttribute, DeviceTaint
from policyengine.language.dynamic_expression import parsed
from policyengine.language.functions.kubernetes import to_quantity, to_semver
from policyengine.language.values import EvaluationError
from policyengine.plugins.devices.device_selector import attributes_read, likeness

DeviceID = tuple[str, str, str]
"""Driver, pool, device."""

_SELECTORS_KEPT: Final = 256
_shared: Final[LRUCache[tuple[str, Hashable], bool | str]] = LRUCache(4096)
"""(selector, what it reads of a device) -> its answer, or what is wrong."""
_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


class SelectorError(Exception):
    """A selector has no answer for a device: a mistake in the claim, the class or the slice."""


class _Domains(dict[str, dict[str, object]]):
    """Domain -> name -> value; asked for an unknown domain it has an empty one."""

    def __missing__(self, domain: str) -> dict[str, object]:
        return {}


class SliceDevice:
    """One device. Lives as long as its slice is unchanged, and remembers which selectors it met."""

    __slots__ = ("_met", "_names", "device", "id", "preventing")

    def __init__(self, driver: str, pool: str, device: Device) -> None:
        self.id: DeviceID = (driver, pool, device.name)
        self.device = device
        self.preventing: tuple[DeviceTaint, ...] = tuple(t for t in device.taints if t.effect in _PREVENTING)
        """The taints that keep it from being allocated, unless tolerated."""
        self._met: dict[str, bool | str] = {}
        self._names: Mapping[str, object] | None = None

    def meets(self, expression: str) -> bool:
        """Whether the selector is true of the device.

        Raises:
            SelectorError: it has no value, or not a bool.
        """
        answer = self._met.get(expression)
        if answer is None:
            if len(self._met) >= _SELECTORS_KEPT:
                self._met.clear()
            answer = self._met[expression] = self._judged(expression)
        if isinstance(answer, str):
            raise SelectorError(answer)
        return answer

    def attribute(self, name: str) -> DeviceAttribute | None:
        """The attribute of a fully qualified name (`domain/id`)."""
        found = self.device.attributes.get(name)
        if found is not None:
            return found
        domain, _, identifier = name.partition("/")
        return self.device.attributes.get(identifier) if domain == self.id[0] else None

    def _judged(self, expression: str) -> bool | str:
        """What the selector says, asked of the first of all devices that are alike to it."""
        reads = attributes_read(expression)
        alike = None if reads is None else likeness(self.id[0], self.device, reads)
        if alike is None:
            return self._evaluated(expression)
        answer = _shared.get((expression, alike))
        if answer is None:
            answer = _shared[expression, alike] = self._evaluated(expression)
        return answer

    def _evaluated(self, expression: str) -> bool | str:
        compiled = parsed(expression)
        if isinstance(compiled, str):
            return f"CEL compile error: {compiled}"
        try:
            if self._names is None:
                self._names = {"device": self._described()}
            value = compiled.value(self._names)
        except EvaluationError as error:
            return f"CEL runtime error: {error}"
        if isinstance(value, bool):
            return value
        return f"CEL runtime error: the selector is not a bool but `{str(value)[:64]}`"

    def _described(self) -> dict[str, object]:
        device, driver = self.device, self.id[0]
        return {
            "driver": driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": _by_domain(driver, ((name, _value(name, one)) for name, one in device.attributes.items())),
            "capacity": _by_domain(
                driver, ((name, to_quantity(str(one.value))) for name, one in device.capacity.items())
            ),
        }


def _by_domain(driver: str, values: Iterable[tuple[str, object]]) -> _Domains:
    domains = _Domains()
    for name, value in values:
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _value(name: str, attribute: DeviceAttribute) -> object:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        return to_semver(attribute.version_value)
    raise EvaluationError(f"attribute {name}: unsupported attribute value")
