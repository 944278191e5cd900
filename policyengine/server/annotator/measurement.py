"""What a source measures, of which nodes, how it fails, and the statistics of its samples: mean and deviation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec
import re2

from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, ObjectMeta, Quantities, Wire, decode
from policyengine.kube.http.client import Client


class _Address(Wire, frozen=True):
    address: str = ""


class _Status(Wire, frozen=True):
    capacity: Quantities = msgspec.field(default_factory=dict)
    allocatable: Quantities = msgspec.field(default_factory=dict)
    addresses: tuple[_Address, ...] = ()


class MeasuredNode(Wire, frozen=True):
    """A node, as far as its annotations and its size go."""

    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


RESOURCE = Kind("Node", "nodes", MeasuredNode)


async def read_nodes(client: Client) -> dict[str, MeasuredNode]:
    """Every node by name; one that cannot be decoded is left out. Raises `ApiError`, `ConnectionFailed`."""
    found: dict[str, MeasuredNode] = {}
    async for raw in client.list_all(RESOURCE):
        with suppress(ObjectError):
            node = decode(MeasuredNode, raw)
            found[node.metadata.name] = node
    return found


class BadPattern(Exception):
    """The expression for instances cannot be used; one sentence."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How the labels of a series name a node.

    1. The first of `labels` that the series has is taken, its port cut off.
    2. Where `pattern` (RE2) matches all of the label's value, its first group is taken instead (or all of it).
    3. A node of that name is meant; else the node one of whose addresses that is.
    """

    labels: tuple[str, ...] = ("node", "instance")
    pattern: str = ""

    def __post_init__(self) -> None:
        if self.pattern:
            options = re2.Options()
            options.log_errors = False
            try:
                re2.compile(self.pattern, options)
            except re2.error as error:
                raise BadPattern(f"`{self.pattern}` is no regular expression (RE2): {error}") from None

    def instance(self, labels: Mapping[str, str]) -> str:
        """What a series says it is of; empty where it has none of the labels."""
        text = next((labels[name] for name in self.labels if labels.get(name)), "")
        match = re2.fullmatch(self.pattern, text) if self.pattern else None
        if match is not None:
            return str((match.group(1) if match.re.groups else match.group(0)) or "")
        return _without_port(text)


def by_instance(nodes: Iterable[MeasuredNode]) -> dict[str, str]:
    """{name or address: node's name}; a name beats another node's address."""
    known: dict[str, str] = {}
    names = list(nodes)
    for node in names:
        for one in node.status.addresses:
            known.setdefault(one.address, node.metadata.name)
    return known | {node.metadata.name: node.metadata.name for node in names}


def _without_port(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.startswith("[")):
        return host.strip("[]")
    return text.strip("[]")


Sample = tuple[float, float]
"""(seconds since the epoch, value)."""
CLOCKS_APART = 60.0
"""Seconds by which the clock of another machine may be ahead of ours."""
_MOST = 2.0**63


def is_amount(value: float) -> bool:
    """Whether a node can have it: it is a number, and not beyond all bounds."""
    return abs(value) < _MOST


def named(nodes: Iterable[str]) -> str:
    """One of the nodes, and whether there are others: a message that stays the same while their number changes."""
    first, *others = sorted(nodes)
    return f"node `{first}`" + (" and others" if others else "")


class SourceUnreachable(Exception):
    """Nobody answers; one sentence."""


class QueryRefused(Exception):
    """The source answers that it cannot; one sentence with what it says."""


MEASURED: Final = ("cpu", "memory", "congestion")
"""What is measured of a node: free cores, free bytes, congestion."""
Samples = Mapping[str, Sequence[Sample]]
"""Node -> its samples, ascending in time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples by what is measured, one of `MEASURED`. What is not measured is absent."""

    windows: Mapping[str, Samples] = field(default_factory=dict)
    days: Mapping[str, Samples] = field(default_factory=dict)
    """Those of the last day, where a forecast is wanted."""
    problems: tuple[str, ...] = ()
    """What of the answer could not be used, a sentence each."""


class Source(Protocol):
    """Something that measures nodes."""

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """The samples of the window that ends now. Raises `SourceUnreachable`, `QueryRefused`."""

    async def close(self) -> None:
        """Give connections up."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over one window, in the samples' unit."""

    mean: float
    deviation: float
    """Of the sample: 0 of a single one."""
    last: float
    at: float
    """The moment of the last sample."""
    forecast: float | None = None


def statistics_of(samples: Sequence[Sample], forecast: float | None = None) -> Statistics | None:
    """The statistics of the samples that are amounts, ascending in time; None where none is."""
    amounts = [(at, value) for at, value in samples if is_amount(value)]
    if not amounts:
        return None
    at, last = amounts[-1]
    mean = math.fsum(value for _, value in amounts) / len(amounts)
    variance = math.fsum((value - mean) ** 2 for _, value in amounts) / max(len(amounts) - 1, 1)
    return Statistics(mean, math.sqrt(variance), last, at, forecast)
