"""How evenly pods were placed: speed must not be bought with a worse spread."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.workloads import ZONE, Workload


@dataclass(frozen=True, slots=True)
class Placement:
    """The measured pods on the workload's nodes."""

    least: int
    most: int
    mean: float
    deviation: float
    """Standard deviation over all nodes, those without a pod too."""
    zones: tuple[int, int]
    """Least and most in a zone."""

    @staticmethod
    def of(workload: Workload, placed: Mapping[str, str]) -> Placement:
        """From {pod: node}. Nodes that were not the workload's from the start count only where they have pods."""
        zone_of = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in workload.node_objects()}
        counts = Counter(dict.fromkeys(zone_of, 0))
        counts.update(placed.values())
        zones = Counter(dict.fromkeys(zone_of.values(), 0))
        zones.update(zone_of[node] for node in placed.values() if node in zone_of)
        each = list(counts.values())
        deviation = statistics.pstdev(each)
        return Placement(
            min(each), max(each), len(placed) / workload.nodes, deviation, (min(zones.values()), max(zones.values()))
        )
