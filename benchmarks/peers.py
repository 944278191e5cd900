"""What kube-scheduler 1.36.2 did on a machine of 2 cores: the figures to beat.

Real API server and etcd on the same machine, client QPS 5000, pods waiting before it starts, rate from the first bind
to the last, Scheduled events written. A ratio to these is only ever taken on one real API server, side by side; on
another server they are shown, not divided by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Peer:
    """kube-scheduler's figures for a workload at one size."""

    workload: str
    nodes: int
    pods: int
    binds_per_second: int
    cpu_seconds: float
    memory_mb: int


PEERS: Final = (
    Peer("peer-basic", 5_000, 10_000, 420, 21, 300),
    Peer("peer-mixed", 5_000, 10_000, 437, 22, 313),
    Peer("peer-spread", 5_000, 5_000, 136, 38, 201),
    Peer("peer-affinity", 5_000, 5_000, 70, 97, 227),
    Peer("peer-antiaffinity", 5_000, 2_000, 178, 12, 164),
    Peer("peer-nodeaffinity", 5_000, 5_000, 170, 34, 230),
    Peer("peer-basic", 15_000, 5_000, 336, 16, 347),
    Peer("peer-basic", 1_000, 2_000, 693, 2.6, 125),
    Peer("peer-spread", 500, 2_000, 492, 3.6, 118),
    Peer("peer-affinity", 500, 2_000, 430, 4.6, 118),
)
LIMIT: Final = {
    "limit": (2_470, 0.12),
    "limit, watch": (1_900, 0.14),
    "limit, watch, events": (1_280, 0.25),
}
"""The client that decides nothing on that real server: (binds a second, CPU ms a bind)."""
FLOORS: Final = {
    "SchedulingBasic": 270,
    "Daemonset": 390,
    "NodeAffinity": 220,
    "PodAntiAffinity": 60,
    "PodAffinity": 35,
    "PreferredPodAffinity": 90,
    "PreferredPodAntiAffinity": 90,
    "TopologySpreading": 85,
    "PreferredTopologySpreading": 125,
    "MixedSchedulingBasePod": 140,
    "PreemptionAsync": 160,
    "Unschedulable": 140,
    "MixedChurn": 265,
}
"""scheduler_perf's workloads: the pods a second below which its CI fails, on machines of its own."""


def peer_of(workload: str, nodes: int, pods: int) -> Peer | None:
    """The peer's figures at exactly this size."""
    return next((one for one in PEERS if (one.workload, one.nodes, one.pods) == (workload, nodes, pods)), None)
