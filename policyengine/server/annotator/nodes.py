"""The nodes of a cluster as the annotator knows them, and who of them a measured instance is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import re2

from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectError, ObjectMeta, Quantities, Wire, decode
from policyengine.kube.http.client import Client


class _Address(Wire, frozen=True):
    address: str = ""


class _Status(Wire, frozen=True):
    capacity: Quantities = msgspec.field(default_factory=dict)
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
