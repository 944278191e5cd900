"""A device of a slice: which CEL selectors it meets, what it draws from counters.

What a selector sees (KEP-4381): `device.driver`, `device.allowMultipleAllocations`, `device.attributes[domain].id`,
`device.capacity[domain].id`. A name without a domain belongs to the driver's; an unknown domain is an empty map.

Its capacities may be shared by several requests (KEP-5075): which part a request takes, and whether it fits. Amounts
stay as they were written until they are compared, exactly. A malformed amount fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from policyengine import quantity
from policyengine.cluster.device_objects import Amount, CapacityRequestPolicy, Device, DeviceAttribute, DeviceCapacity
from policyengine.cluster.device_slices import model
from policyengine.cluster.node_objects import Taint
from policyengine.language.evaluate import parsed
from policyengine.language.functions.kubernetes import to_quantity, to_semver
from policyengine.language.scalar_evaluator import Evaluation
from policyengine.language.values import EvaluationError

DeviceID = tuple[str, str, str]
"""Driver, pool, device."""
Counters = dict[tuple[str, str], int]
"""(counter set, counter) -> billionths."""

_SELECTORS_KEPT: Final = 256
_ANSWERS_KEPT: Final = 1 << 14
_LOOKS_OF_ONE: Final = 100_000
"""What one evaluation of a selector may take, as `Reading.looks` counts it. The API server admits those that cel-go's
estimate of costs is content with: comprehensions of some ten thousand rounds are among them."""
_TEXT_OF_A_LOOK: Final = 128
"""Characters of a selector that take as long to evaluate as it takes to look at a device."""
_PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


class SelectorError(Exception):
    """A selector has no answer for a device: a mistake in the claim, the class or the slice."""


class Reading(set[str]):
    """The names of the attributes whose values a search has read, and how much it has done."""

    looks = 0
    """Looks at devices, and what evaluating selectors takes in the same unit: the same for the same search."""
    spared = 0
    """How many of these belong to evaluations whose answers were known."""


class _Domains(dict[str, Mapping[str, object]]):
    """Domain -> name -> value; asked for an unknown domain it has an empty one."""

    def __missing__(self, domain: str) -> Mapping[str, object]:
        return {}


class _Noting(Mapping[str, object]):
    """The attributes of one domain; notes the full names of those whose values an evaluation reads."""

    def __init__(self, values: Mapping[str, object], read: set[str]) -> None:
        """`values`: name in the domain -> (name as the device has it, value)."""
        self._values: Any = values
        self._read = read

    def __getitem__(self, identifier: str) -> object:
        name, value = self._values[identifier]
        self._read.add(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


Answer = tuple[bool | str, int]
"""What a selector says of a device, or what went wrong; and how many looks that took."""
Answers = dict[str, dict[tuple[str, ...], dict[tuple[DeviceAttribute, ...], Answer]]]
"""Selector -> names of the attributes that an evaluation read -> their values -> the answer."""
_encode = msgspec.msgpack.Encoder().encode


@lru_cache(maxsize=1024)
def _answers(model: bytes) -> Answers:
    """Shared by all devices of a model: those that differ at most in the values of attributes."""
    return {}


class SliceDevice:
    """One device. Lives as long as its slice is unchanged.

    A selector is not evaluated again for a device of the same model that has the same values wherever an earlier
    evaluation read any: that of `device.attributes["gpu.example"].memory > 4` read one, so UUIDs do not matter to it.
    """

    def __init__(self, driver: str, pool: str, device: Device) -> None:
        self.id: DeviceID = (driver, pool, device.name)
        self.device = device
        self.preventing: tuple[Taint, ...] = tuple(t for t in device.taints if t.effect in _PREVENTING)
        """The taints that keep it from being allocated, unless tolerated."""
        self.draws = _drawn(device) if device.consumes_counters else {}
        """What it draws from counters while it is allocated."""
        self._answers: Answers | None = None

    def meets(self, expression: str, read: Reading) -> bool:
        """Whether the selector is true of the device. Adds to `read` the attributes whose values that depends on, and
        what it takes.

        Raises:
            SelectorError: it has no value, or not a bool.
        """
        if self._answers is None:
            self._answers = _answers(_encode((self.id[0], model(self.device))))
        known = self._answers.setdefault(expression, {})
        for names, answers in known.items():
            answer = answers.get(self._values(names))
            if answer is not None:
                read.spared += answer[1]
                break
        else:
            own: set[str] = set()
            answer = self._evaluated(expression, own)
            names = tuple(sorted(own))
            if len(known.get(names, ())) >= _ANSWERS_KEPT or len(self._answers) > _SELECTORS_KEPT:
                self._answers.clear()
                known = self._answers.setdefault(expression, {})
            known.setdefault(names, {})[self._values(names)] = answer
        read.update(names)
        met, looks = answer
        read.looks += looks
        if isinstance(met, str):
            raise SelectorError(met)
        return met

    def _values(self, names: tuple[str, ...]) -> tuple[DeviceAttribute, ...]:
        attributes = self.device.attributes
        return tuple([attributes[name] for name in names])

    def attribute(self, name: str) -> DeviceAttribute | None:
        """The attribute of a fully qualified name (`domain/id`)."""
        found = self.device.attributes.get(name)
        if found is not None:
            return found
        domain, _, identifier = name.partition("/")
        return self.device.attributes.get(identifier) if domain == self.id[0] else None

    def _evaluated(self, expression: str, read: set[str]) -> Answer:
        """The whole text counts once, and once more for each round of its comprehensions."""
        compiled, text = parsed(expression), len(expression) // _TEXT_OF_A_LOOK
        if isinstance(compiled, str):
            return f"CEL compile error: {compiled}", text
        evaluation = Evaluation()
        evaluation.steps = most = _LOOKS_OF_ONE // (1 + text)
        value: object
        try:
            evaluation.values = {"device": self._described(read)}
            value = compiled(evaluation)
        except EvaluationError as error:
            value = f"CEL runtime error: {_in_cel(str(error))}"
        else:
            if not isinstance(value, bool):
                value = f"CEL runtime error: the selector is not a bool but `{str(value)[:64]}`"
        return value, text + int(most - evaluation.steps) * (1 + text)

    def _described(self, read: set[str]) -> dict[str, object]:
        device, driver = self.device, self.id[0]
        attributes = _by_domain(driver, ((name, (name, _value(name, one))) for name, one in device.attributes.items()))
        return {
            "driver": driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": _Domains({domain: _Noting(values, read) for domain, values in attributes.items()}),
            "capacity": _by_domain(
                driver, ((name, to_quantity(str(one.value))) for name, one in device.capacity.items())
            ),
        }


def _in_cel(message: str) -> str:
    """As cel-go says it: `no such key: id`."""
    missing = message.removeprefix("no such key `")
    return message if missing == message else f"no such key: {missing.removesuffix('`')}"


def _by_domain(driver: str, values: Iterable[tuple[str, object]]) -> _Domains:
    domains: dict[str, dict[str, object]] = {}
    for name, value in values:
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return _Domains(domains)


def _value(name: str, attribute: DeviceAttribute) -> object:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        return to_semver(attribute.version_value)
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _drawn(device: Device) -> Counters:
    """A malformed amount counts as more than any counter holds."""
    amounts: Counters = {}
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            try:
                amount = quantity.nanos(counter.value)
            except quantity.QuantityError:
                amount = quantity.MAX_INT64 * 10**9
            key = (consumption.counter_set, name)
            amounts[key] = amounts.get(key, 0) + amount
    return amounts


Consumption = Mapping[str, Amount]
"""Capacity -> the amount, written as the request, the policy or the device has it."""
NOTHING: Final[Consumption] = {}


def consumption(device: Device, requests: Mapping[str, Amount]) -> Consumption | None:
    """What a request takes of each capacity, rounded as the device's policies want; None where it asks for a
    capacity that the device has not, or an amount that a policy does not allow."""
    if not requests.keys() <= device.capacity.keys():
        return None
    taken: dict[str, Amount] = {}
    try:
        for name, capacity in device.capacity.items():
            amount = _rounded(requests.get(name), capacity)
            if _is_forbidden(quantity.nanos(amount), capacity.request_policy):
                return None
            taken[name] = amount
    except quantity.QuantityError:
        return None
    return taken


def fits(device: Device, held: Mapping[str, int], wanted: Consumption, *others: Consumption) -> bool:
    """Whether the device has room for what is wanted beside what others have; `held` in billionths."""
    for name, capacity in device.capacity.items():
        total = held.get(name, 0) + sum(quantity.nanos(one[name]) for one in (wanted, *others))
        if total > quantity.nanos(capacity.value):
            return False
    return True


def _rounded(request: Amount | None, capacity: DeviceCapacity) -> Amount:
    policy = capacity.request_policy
    if request is None:
        default = policy.default if policy is not None else None
        return capacity.value if default is None else default
    if policy is None:
        return request
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(request, policy.valid_range.min, policy.valid_range.step)
    amount = quantity.nanos(request)
    return next((valid for valid in policy.valid_values if quantity.nanos(valid) >= amount), request)


def _rounded_in_range(request: Amount, least: Amount, step: Amount | None) -> Amount:
    if quantity.nanos(request) < quantity.nanos(least):
        return least
    width = _whole(step)
    if not width:
        return request
    start = quantity.value(least)
    return quantity.format_bytes(start + width * -(-(quantity.value(request) - start) // width))


def _is_forbidden(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == quantity.nanos(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > quantity.nanos(valid.max):
            return True
        step = _whole(valid.step)
        return bool(step) and (-(-amount // 10**9) - _whole(valid.min)) % step != 0
    allowed = [quantity.nanos(one) for one in policy.valid_values]
    return bool(allowed) and amount not in allowed


def _whole(amount: Amount | None) -> int:
    return 0 if amount is None else quantity.value(amount)
