"""What a pod asks for, as the API defines it: the sums every scheduler and kubelet must agree on.

Sources: KEP-753 (sidecars: their requests add up, and count beside each later init container), KEP-2837
(pod-level resources replace the sum for cpu, memory and hugepages), KEP-688 (overhead is added last), KEP-1287
(in-place resize: the largest of desired, allocated and actuated counts; a resize found infeasible leaves the
desired one out). Non-zero defaults (100m, 200Mi a container) serve scoring only.

Amounts are added exactly, in billionths, and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from policyengine import quantity
from policyengine.cluster.pod_objects import Container, ContainerStatus, PodSpec, PodStatus
from policyengine.quantity import QuantityError

CPU, MEMORY, EPHEMERAL_STORAGE = "cpu", "memory", "ephemeral-storage"
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

LIMIT = 1 << 52
"""The largest amount counted for one pod (4Pi): sums of any number of pods on a node stay within int64."""

Amounts = dict[str, int]
"""Resource name -> billionths."""

What = Literal["requests", "limits"]

AmountsOf = Callable[[Container, bool], Amounts]
"""(container, whether it may be resized in place) -> what it counts for."""

_NANO = 10**9
_DEFAULTS: Amounts = {CPU: DEFAULT_MILLI_CPU * 10**6, MEMORY: DEFAULT_MEMORY * _NANO}
_NO_SCALARS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Requests:
    """Amounts as the scheduler counts them: millicores, bytes, bytes, whole units."""

    cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: Mapping[str, int] = field(default_factory=lambda: _NO_SCALARS)
    """Extended resources, hugepages, attachable volumes; those asked for, zeros included."""

    def get(self, resource: str) -> int:
        """The amount of a resource by its Kubernetes name, 0 when unset."""
        if resource == CPU:
            return self.cpu
        if resource == MEMORY:
            return self.memory
        if resource == EPHEMERAL_STORAGE:
            return self.ephemeral_storage
        return self.scalars.get(resource, 0)

    def items(self) -> Iterable[tuple[str, int]]:
        """(Kubernetes name, amount): cpu, memory, ephemeral-storage, then the scalars."""
        yield CPU, self.cpu
        yield MEMORY, self.memory
        yield EPHEMERAL_STORAGE, self.ephemeral_storage
        yield from self.scalars.items()


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts this resource besides cpu, memory and ephemeral-storage: extended ones,
    hugepages, prefixed native ones, attachable volumes.
    """
    return ("/" in name and not name.startswith("requests.")) or name.startswith(("hugepages-", "attachable-volumes-"))


class Reading:
    """Reads resource lists, keeping the first thing that cannot be read instead of failing."""

    def __init__(self) -> None:
        self.problem: str | None = None

    def amounts(self, quantities: Mapping[str, str | int | float], where: str) -> Amounts:
        """Billionths by name; what is malformed or negative counts as nothing and is noted."""
        result: Amounts = {}
        for name, text in quantities.items():
            try:
                amount = quantity.nanos(text)
            except QuantityError as error:
                self._note(f"{where}: `{name}`: {error}")
                continue
            if amount < 0:
                self._note(f"{where}: `{name}`: `{text}` is negative; write an amount of 0 or more")
                continue
            result[name] = amount
        return result

    def whole(self, name: str, billionths: int, where: str) -> int:
        """Millicores for cpu, else whole units, rounded up, at most `LIMIT`."""
        unit = 10**6 if name == CPU else _NANO
        amount = -(-billionths // unit)
        if amount > LIMIT:
            self._note(f"{where}: `{name}` is beyond what can be counted; ask for less")
            return LIMIT
        return amount

    def _note(self, problem: str) -> None:
        if self.problem is None:
            self.problem = problem


def account(spec: PodSpec, status: PodStatus) -> tuple[Requests, Requests, int, int, str | None]:
    """Everything a pod asks for: requests, limits, cpu and memory with defaults, and what cannot be read. `status`
    matters only to in-place resize."""
    reading = Reading()
    plain = _pod_amounts(spec, status, reading, "requests", {})
    defaults = {
        name: amount for name, amount in _DEFAULTS.items() if not (_requests_at_pod_level(spec) and name in plain)
    }
    nonzero = _pod_amounts(spec, status, reading, "requests", defaults) if defaults else plain
    requests = _requests(plain, reading, "requests")
    limits = _requests(_pod_amounts(spec, status, reading, "limits", {}), reading, "limits")
    cpu, memory = (reading.whole(name, nonzero.get(name, 0), "requests") for name in (CPU, MEMORY))
    return requests, limits, cpu, memory, reading.problem


def _requests(amounts: Amounts, reading: Reading, where: str) -> Requests:
    scalars = {name: reading.whole(name, amount, where) for name, amount in amounts.items() if is_scalar(name)}
    return Requests(
        cpu=reading.whole(CPU, amounts.get(CPU, 0), where),
        memory=reading.whole(MEMORY, amounts.get(MEMORY, 0), where),
        ephemeral_storage=reading.whole(EPHEMERAL_STORAGE, amounts.get(EPHEMERAL_STORAGE, 0), where),
        scalars=MappingProxyType(scalars) if scalars else _NO_SCALARS,
    )


def _pod_amounts(spec: PodSpec, status: PodStatus, reading: Reading, what: What, defaults: Amounts) -> Amounts:
    """The pod's requests or limits. What is allocated has no limits, and overhead is added only to limits that are
    set."""
    is_requests = what == "requests"
    statuses = {cs.name: cs for cs in (*status.container_statuses, *status.init_container_statuses)}

    def in_effect(wanted: Amounts, actual: ContainerStatus | PodStatus | None, where: str) -> Amounts:
        if actual is None or actual.resources is None:
            return wanted
        where = where if is_requests else "limits in the status"
        result = {} if resize_infeasible(status) else dict(wanted)
        _raise(result, reading.amounts(getattr(actual.resources, what), where))
        if is_requests:
            _raise(result, reading.amounts(actual.allocated_resources, where))
        return result

    def of_container(container: Container, resizable: bool) -> Amounts:
        name = container.name
        wanted = reading.amounts(getattr(container.resources, what), f"container `{name}` {what}")
        actual = statuses.get(name) if resizable else None
        return defaults | in_effect(wanted, actual, f"status of container `{name}`")

    total = _aggregate(spec, of_container)
    if spec.resources is not None and (_requests_at_pod_level(spec) or not is_requests):
        wanted = reading.amounts(getattr(spec.resources, what), f"pod-level {what}")
        amounts = in_effect(wanted, status, "status of the pod's resources")
        total |= {name: amounts.get(name, 0) for name in wanted if _at_pod_level(name)}
    overhead = reading.amounts(spec.overhead, "overhead")
    _add(total, {name: amount for name, amount in overhead.items() if is_requests or total.get(name)})
    return total


def _aggregate(spec: PodSpec, amounts_of: AmountsOf) -> Amounts:
    """Containers added up, sidecars with them; at least what the hungriest init container needs in its turn."""
    total: Amounts = {}
    for container in spec.containers:
        _add(total, amounts_of(container, True))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        amounts = amounts_of(container, is_sidecar)
        if is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)  # no peak of their own: the total has them all
        else:
            during = dict(sidecars)
            _add(during, amounts)
            _raise(peak, during)
    _raise(total, peak)
    return total


def resize_infeasible(status: PodStatus) -> bool:
    """Whether the kubelet found the desired resize impossible on its node."""
    for condition in status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _requests_at_pod_level(spec: PodSpec) -> bool:
    return spec.resources is not None and any(_at_pod_level(name) for name in spec.resources.requests)


def _at_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, floor: Amounts) -> None:
    """Bring `total` up to `floor`, resource by resource; a resource named at all stays named."""
    for name, amount in floor.items():
        if amount > total.get(name, -1):
            total[name] = amount


QOSClass = Literal["BestEffort", "Burstable", "Guaranteed"]


def qos_class(spec: PodSpec) -> QOSClass:
    """Guaranteed: every container, or the pod as a whole, limits cpu and memory to just what it requests."""
    resources = [container.resources for container in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        resources = [spec.resources]
    requests: Amounts = {}
    limits: Amounts = {}
    all_limited = True
    for one in resources:
        _add(requests, _cpu_and_memory(one.requests))
        limited = _cpu_and_memory(one.limits)
        _add(limits, limited)
        all_limited = all_limited and len(limited) == 2
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _cpu_and_memory(quantities: Mapping[str, str | int | float]) -> Amounts:
    """What is above 0 of the two."""
    amounts = Reading().amounts(quantities, "")
    return {name: amounts[name] for name in (CPU, MEMORY) if amounts.get(name)}
