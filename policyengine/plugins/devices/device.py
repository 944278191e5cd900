"""A device of a slice: which CEL selectors it meets, and which parts of its capacity a request takes.

What a selector sees (KEP-4381): `device.driver`, `device.allowMultipleAllocations`, `device.attributes[domain].id`,
`device.capacity[domain].id`. A name without a domain belongs to the driver's; an unknown domain is an empty map.

Capacities that requests share (KEP-5075) are counted in billionths. A malformed amount fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from policyengine import quantity
from policyengine.cluster.device_objects import (
    Amount,
    CapacityRange,
    CapacityRequestPolicy,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from policyengine.cluster.node_objects import Taint
from policyengine.language.evaluate import parsed
from policyengine.language.functions.kubernetes import to_quantity, to_semver
from policyengine.language.values import EvaluationError

DeviceID = tuple[str, str, str]
"""Driver, pool, device."""

_SELECTORS_KEPT: Final = 256
_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


class SelectorError(Exception):
    """A selector has no answer for a device: a mistake in the claim, the class or the slice."""


class _Domains(dict[str, dict[str, object]]):
    """Domain -> name -> value; asked for an unknown domain it has an empty one."""

    def __missing__(self, domain: str) -> dict[str, object]:
        return {}


_encode = msgspec.msgpack.Encoder().encode


@lru_cache(maxsize=4096)
def _answers(content: bytes) -> dict[str, bool | str]:
    """Selector -> its answer, shared by all devices of which a selector sees this content."""
    return {}


class SliceDevice:
    """One device. Lives as long as its slice is unchanged, and shares the answers of selectors with devices alike."""

    __slots__ = ("_met", "device", "id", "preventing")

    def __init__(self, driver: str, pool: str, device: Device) -> None:
        self.id: DeviceID = (driver, pool, device.name)
        self.device = device
        self.preventing: tuple[Taint, ...] = tuple(t for t in device.taints if t.effect in _PREVENTING)
        """The taints that keep it from being allocated, unless tolerated."""
        seen = (driver, device.allow_multiple_allocations, device.attributes, device.capacity)
        self._met = _answers(_encode(seen))

    def meets(self, expression: str) -> bool:
        """Whether the selector is true of the device.

        Raises:
            SelectorError: it has no value, or not a bool.
        """
        answer = self._met.get(expression)
        if answer is None:
            if len(self._met) >= _SELECTORS_KEPT:
                self._met.clear()
            answer = self._met[expression] = self._evaluated(expression)
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

    def _evaluated(self, expression: str) -> bool | str:
        compiled = parsed(expression)
        if isinstance(compiled, str):
            return f"CEL compile error: {compiled}"
        try:
            value = compiled({"device": self._described()})
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


Consumption = Mapping[str, int]
"""Capacity -> billionths."""
NOTHING: Final[Consumption] = {}
_NANO: Final = 10**9


def consumption(device: Device, requests: Mapping[str, Amount]) -> Consumption | None:
    """What a request takes of each capacity, rounded as the device's policies want; None where it asks for a
    capacity that the device has not, or an amount that a policy does not allow."""
    if not requests.keys() <= device.capacity.keys():
        return None
    taken: dict[str, int] = {}
    try:
        for name, capacity in device.capacity.items():
            amount = _rounded(requests.get(name), capacity)
            if _is_forbidden(amount, capacity.request_policy):
                return None
            taken[name] = amount
    except quantity.QuantityError:
        return None
    return taken


def fits(device: Device, wanted: Consumption, *others: Consumption) -> bool:
    """Whether the device has room for what is wanted beside what others have."""
    for name, capacity in device.capacity.items():
        total = wanted[name] + sum(other.get(name, 0) for other in others)
        if total > quantity.nanos(capacity.value):
            return False
    return True


def _rounded(request: Amount | None, capacity: DeviceCapacity) -> int:
    policy = capacity.request_policy
    if request is None:
        default = policy.default if policy is not None else None
        return quantity.nanos(capacity.value if default is None else default)
    amount = quantity.nanos(request)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(amount, policy.valid_range)
    larger = (valid for one in policy.valid_values if (valid := quantity.nanos(one)) >= amount)
    return next(larger, amount)


def _rounded_in_range(amount: int, valid: CapacityRange) -> int:
    least = quantity.nanos(valid.min if valid.min is not None else 0)
    if amount < least:
        return least
    if valid.step is None:
        return amount
    start, step = _whole(valid.min), _whole(valid.step)
    steps = -(-(-(-amount // _NANO) - start) // step) if step else 0
    return (start + step * steps) * _NANO


def _is_forbidden(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == quantity.nanos(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > quantity.nanos(valid.max):
            return True
        step = _whole(valid.step)
        return bool(step) and (-(-amount // _NANO) - _whole(valid.min)) % step != 0
    allowed = [quantity.nanos(one) for one in policy.valid_values]
    return bool(allowed) and amount not in allowed


def _whole(amount: Amount | None) -> int:
    return 0 if amount is None else quantity.value(amount)
