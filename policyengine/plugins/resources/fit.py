"""NodeResourcesFit: does what the pod asks for fit into what is left, and how full should nodes be?

Filter: pod count, cpu, memory, ephemeral-storage, then extended and other scalar resources. A request beyond the
node's allocatable itself cannot be cured by evictions: UnschedulableAndUnresolvable. A resource that a device class
stands for, and the node's allocatable has none of, is left to DynamicResources.
Score: see `scoring_strategy`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.allocatable import allocatable_of
from policyengine.cluster.device_objects import DeviceClass
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import FEW, at
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import Reads
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.status import SUCCESS, Code, Refusal, Rows, State, Status, Verdicts, passed
from policyengine.plugins.extended_resources import IMPLICIT, backed_resources
from policyengine.plugins.resources.amounts import PODS, Asked
from policyengine.plugins.resources.scoring_strategy import STRATEGY_NAMES, STRATEGY_SCHEMA, read_strategy
from policyengine.plugins.selectors.label_selector import KEY_SCHEMA

CLASS: Final = DeviceClass.__name__
_BASIC: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_MAX_TABLE: Final = 1 << 12
_WIDEST: Final = 60

Demand = tuple[tuple[str, int], ...]
"""(resource, amount above 0) in the order of the reasons."""


class _Wanted(NamedTuple):
    """What the plugin reads of a pod."""

    demand: Demand
    scored: tuple[int, ...]
    """What is asked of each resource of the strategy."""


TOO_MANY_PODS: Final = "Too many pods"


class _Fit:
    """The demand, and the combinations of reasons met so far."""

    def __init__(self, demand: Demand, backed: frozenset[str]) -> None:
        self.demand = demand
        self.backed = backed
        """Resources that are DynamicResources' question on nodes whose allocatable has none of them."""
        self.refusals: list[Refusal] = []
        self._numbers: dict[int, int] = {}

    def number(self, bits: int) -> int:
        """1 + index of the refusal for a combination: bit 0 unresolvable, bit 1 pods, then the demand's."""
        known = self._numbers.get(bits)
        if known is None:
            names = [TOO_MANY_PODS, *(f"Insufficient {resource}" for resource, _ in self.demand)]
            reasons = tuple(name for index, name in enumerate(names) if bits >> (index + 1) & 1)
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if bits & 1 else Code.UNSCHEDULABLE
            self.refusals.append(Refusal(code, reasons))
            known = self._numbers[bits] = len(self.refusals)
        return known


class NodeResourcesFit:
    """Reads what the pod asks for, and allocatable and requested of the nodes."""

    name = "NodeResourcesFit"
    reads = Reads.NODE | Reads.PODS
    reads_only_sums = True
    arguments: Final = schema_of(
        strategy=STRATEGY_NAMES,
        scoringStrategy=STRATEGY_SCHEMA,
        ignoredResources={"type": "array", "items": KEY_SCHEMA},
        ignoredResourceGroups={"type": "array", "items": {**KEY_SCHEMA, "not": {"pattern": "/"}}},
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """NodeResourcesFitArgs, or `strategy` alone for one with default resources. ValueError when malformed."""
        arguments = arguments or {}
        self._ignored = frozenset(arguments.get("ignoredResources") or ())
        self._ignored_groups = frozenset(arguments.get("ignoredResourceGroups") or ())
        self._strategy = read_strategy(arguments.get("scoringStrategy"), arguments.get("strategy"))
        self._wanted = lru_cache(maxsize=4096)(self._wanted_of)
        self._backed: frozenset[str] = frozenset()
        """Resources that device classes stand for, as of the last pod that asked for any but the basic ones."""

    def ignoring(self, resources: frozenset[str]) -> NodeResourcesFit:
        """The same plugin with these `ignoredResources` in place of its own."""
        other = NodeResourcesFit()
        other._ignored, other._ignored_groups = resources, self._ignored_groups
        other._strategy = self._strategy
        return other

    def signature(self, pod: PodInfo) -> Hashable:
        """What is asked for, as filtered and as scored."""
        return self._wanted(pod.shape)

    def situation(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """The device classes, for a pod that asks for what they may stand for. They are there where DynamicResources
        is: it is that which has them watched, and gives the devices."""
        return snapshot.version(CLASS) if pod.shape.requests.scalars else 0

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Never skipped: every pod counts as one."""
        demand = self._wanted(pod.shape).demand
        if not pod.shape.requests.scalars:
            return SUCCESS, _Fit(demand, frozenset())
        self._backed = frozenset(backed_resources(snapshot.objects(DeviceClass)))
        return SUCCESS, _Fit(demand, self._backed.intersection(name for name, _ in demand))

    def filter(self, state: _Fit, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """All that is short on a node is named."""
        nodes = snapshot.nodes
        if len(rows) <= FEW:
            combinations = [_bits(state, nodes, row) for row in rows.tolist()]
            if not any(combinations):
                return passed(len(rows))
            numbers = [state.number(bits) if bits else 0 for bits in combinations]
            return Verdicts(np.array(numbers, dtype=np.int16), state.refusals)
        bits: NDArray[Any] | None = None
        full = at(nodes.pod_count, rows) >= at(nodes.allowed_pods, rows)
        if full.any():
            bits = _bit(full, 1, state)
        nowhere = 0
        for place, (resource, amount) in enumerate(state.demand, start=2):
            if not nodes.is_known(resource):  # pods name such resources by the thousand
                nowhere |= 0 if resource in state.backed else 1 << place | 1
                continue
            free = at(nodes.free(resource), rows)
            if amount > free.min():
                short, offered = amount > free, at(nodes.allocatable(resource), rows)
                if resource in state.backed:
                    short &= offered > 0
                mine = _bit(short, place, state) | (short & (amount > offered))
                bits = mine if bits is None else bits | mine
        if nowhere:
            bits = _bit(np.ones(len(rows), dtype=np.bool_), 0, state) * nowhere | (0 if bits is None else bits)
        if bits is None:
            return passed(len(rows))
        return Verdicts(_numbered(bits, state), state.refusals)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Never skipped."""
        return SUCCESS, self._strategy.resources.asked(self._wanted(pod.shape).scored)

    def score(self, state: Asked, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The strategy's score, 0..100."""
        return self._strategy.score(snapshot.nodes, state, rows)

    def score_row(self, state: State, snapshot: Snapshot, row: int) -> int:
        """The strategy's score of one node."""
        return self._strategy.score_at(snapshot.nodes, state, row)

    def score_placement(self, nodes: NodeTable, rows: Rows, shapes: Iterable[PodShape]) -> int:
        """How full these nodes would be with pods of these shapes, 0..100: MostAllocated, whatever scores nodes."""
        return self._strategy.resources.filled(nodes, rows, shapes)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Pods that go or shrink, nodes that come or grow, classes that stand for a resource."""
        return (
            on(Resource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN, _freed),
            on(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE, self._grown),
            on(Resource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE, _backs),
        )

    def _wanted_of(self, shape: PodShape) -> _Wanted:
        scored = self._strategy.resources.requests(shape)
        return _Wanted(self._demand_of(shape) if shape.requests.scalars else shape.amounts, scored)

    def _demand_of(self, shape: PodShape) -> Demand:
        basic = [(name, amount) for name, amount in shape.amounts if name in _BASIC]
        scalars = [(name, amount) for name, amount in sorted(shape.requests.scalars.items()) if amount > 0]
        return (*basic, *((name, amount) for name, amount in scalars if not self._is_ignored(name)))

    def _is_ignored(self, resource: str) -> bool:
        group, slash, _ = resource.partition("/")
        if not slash or _NATIVE_DOMAIN in resource:
            return False  # only extended resources can be ignored
        return resource in self._ignored or group in self._ignored_groups

    def _grown(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        if new is None:
            return False
        now = _offered(new)
        demand = self._wanted(pod.shape).demand
        devices = {name for name, _ in demand if name in self._backed and not now.get(name, 0)}
        if now.get(PODS, 0) < 1 or any(amount > now.get(name, 0) for name, amount in demand if name not in devices):
            return False
        if old is None:
            return True
        before = _offered(old)
        wanted = (PODS, *(name for name, _ in demand))
        return bool(devices) or any(now.get(name, 0) > before.get(name, 0) for name in wanted)


def _freed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if new is None:
        return old is not None and bool(old.node_name or old.nominated_node_name)
    if new.uid == pod.uid:
        return True
    if not new.node_name or old is None:
        return False
    before, after = old.shape.requests, new.shape.requests
    return any(amount and before.get(name) > after.get(name) for name, amount in pod.shape.amounts)


def _backs(pod: PodInfo, old: DeviceClass | None, new: DeviceClass | None) -> bool:
    """Whether the class has come to stand for something that the pod asks for."""
    if new is None:
        return False
    named = new.spec.extended_resource_name
    resources = {named} if old is None or old.spec.extended_resource_name != named else set()
    if old is None:
        resources.add(f"{IMPLICIT}{new.metadata.name}")
    return any(name in pod.shape.requests.scalars for name in resources)


def _offered(node: Node) -> Mapping[str, int]:
    offer = allocatable_of(node)
    return {**offer.amounts, PODS: offer.pods}


def _bits(fit: _Fit, nodes: NodeTable, row: int) -> int:
    """The combination of reasons of one node, 0 where nothing is short."""
    bits = 2 if nodes.is_full(row) else 0
    for place, (resource, amount) in enumerate(fit.demand, start=2):
        offered, free = nodes.room(resource, row)
        if amount > free and (offered or resource not in fit.backed):
            bits |= 1 << place | int(amount > offered)
    return bits


def _bit(mask: NDArray[np.bool_], place: int, fit: _Fit) -> NDArray[Any]:
    """The bit at `place` where the mask holds; in Python's integers for demands that outgrow 64 bits."""
    if len(fit.demand) > _WIDEST:
        return mask.astype(object) * (1 << place)
    return mask * np.int64(1 << place)


def _numbered(bits: NDArray[Any], fit: _Fit) -> NDArray[np.int16]:
    """The number of each row's combination of reasons; 0 where there is none."""
    size = 1 << (len(fit.demand) + 2)
    if size <= _MAX_TABLE:
        present = np.flatnonzero(np.bincount(bits, minlength=size))
        table = np.zeros(size, dtype=np.int16)
        for combination in present.tolist():
            table[combination] = fit.number(combination) if combination else 0
        numbered: NDArray[np.int16] = table[bits]
        return numbered
    combinations, which = np.unique(bits, return_inverse=True)
    numbers = [fit.number(combination) if combination else 0 for combination in combinations.tolist()]
    picked: NDArray[np.int16] = np.array(numbers, dtype=np.int16)[which]
    return picked
