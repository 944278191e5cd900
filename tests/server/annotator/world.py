"""Nodes, and a source that says what a test tells it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from policyengine.cluster.objects import decode
from policyengine.server.annotator.measurement import Measured, MeasuredNode, Sample


def node_object(name: str, annotations: Mapping[str, str] | None = None, addresses: Sequence[str] = ()) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": address} for address in addresses],
        },
    }


def node(name: str, annotations: Mapping[str, str] | None = None, addresses: Sequence[str] = ()) -> MeasuredNode:
    return decode(MeasuredNode, json.dumps(node_object(name, annotations, addresses)).encode())


class Told:
    """A source. `cpu` and `memory` are free cores and bytes now; an error in `fails` is raised instead."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.memory: dict[str, float] = {}
        self.fails: Exception | None = None

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        if self.fails is not None:
            raise self.fails

        def at(values: Mapping[str, float]) -> dict[str, list[Sample]]:
            return {name: [(now, value)] for name, value in values.items()}

        return Measured({"cpu": at(self.cpu), "memory": at(self.memory)})

    async def close(self) -> None:
        pass
