"""Records as `python -m benchmarks --save` keeps them, made up: for what reads them."""

from dataclasses import asdict, replace
from typing import Any

from benchmarks.decisions import DecisionFigures, MemoryFigures
from benchmarks.end_to_end import EndToEndFigures
from benchmarks.figures import Samples, Spread
from benchmarks.machine import this_machine
from benchmarks.measure import alone_record, end_to_end_record
from benchmarks.records import Record
from benchmarks.scale import Point, ScaleFigures, exponents

REAL = "kube-apiserver 1.36"


def run(contestant: str, rate: float, **more: Any) -> EndToEndFigures:
    """Ten seconds of peer-basic at its own size."""
    count = int(rate)
    made = EndToEndFigures(
        workload="peer-basic",
        nodes=5_000,
        pods=10_000,
        contestant=contestant,
        server="embedded",
        bound=10_000,
        binds_per_second=rate,
        seconds=10.0,
        first_bind_seconds=1.5,
        samples=Samples(count, count, count, count, count - 1, rate, (count,) * 9 + (3,)),
        cpu_seconds=4.0,
        first_bind_cpu_seconds=0.5,
        cpu_ms_per_pod=0.4,
        peak_mb=100.0,
        created="before",
        pods_per_node=(2, 2, 2.0),
        pods_per_node_deviation=0.0,
        pods_per_zone=(1_000, 1_000),
        events=10_000,
        events_behind_seconds=0.5,
        checks=16,
        check_cpu_seconds=0.1,
        last_words="",
    )
    return replace(made, **more)


def ends(*runs: EndToEndFigures) -> Record:
    """A measurement end to end; ours is `policyengine`."""
    found: dict[str, list[EndToEndFigures]] = {}
    for one in runs:
        found.setdefault(one.contestant, []).append(one)
    return end_to_end_record(found, "policyengine", "default", "python -m benchmarks peer-basic", this_machine())


def decided(workload: str, median: float, a_second: float, policy: str = "default") -> Record:
    """A measurement of decisions alone."""
    spread = Spread(median, 2 * median, 3 * median, 100)
    figures = DecisionFigures(
        workload=workload,
        policy=policy,
        nodes=5_000,
        pods=100,
        bound=100,
        decisions_per_second=a_second,
        pods_per_second=a_second,
        decision=spread,
        pod_event=spread,
        node_event=spread,
        pods_per_node_max=1,
        checks=20,
        memory_mb=100.0,
        yardstick_us=100.0,
    )
    return alone_record(figures, f"{workload} {policy}", f"python -m benchmarks decisions {workload}", this_machine())


def held(nodes: int, pods: int, mb: float) -> Record:
    """A measurement of memory."""
    figures = MemoryFigures(nodes, pods, 60.0, mb)
    return alone_record(figures, f"{nodes}/{pods}", "python -m benchmarks memory", this_machine())


def grown() -> Record:
    """A measurement of scale whose costs grow as the nodes do."""
    by_nodes = tuple(point(nodes, 10_000, nodes / 10) for nodes in (1_000, 5_000, 100_000))
    by_pods = tuple(point(15_000, pods, 900.0) for pods in (10_000, 150_000))
    lost = ("7 nodes, 8 pods: it says nothing for 120 s",)
    figures = ScaleFigures(by_nodes, by_pods, lost, exponents(by_nodes, by_pods))
    return alone_record(figures, "100000/150000", "python -m benchmarks scale", this_machine())


def point(nodes: int, pods: int, different: float) -> Point:
    """One size."""
    return Point(nodes, pods, different, 500, 80.0, 2_000, 1.5, 2.1, 1.2, 200.0)


def as_json(record: Record) -> dict[str, Any]:
    """As it stands in a file."""
    return asdict(record)
