"""Records as `python -m benchmarks --save` keeps them, made up: for what reads them."""

from dataclasses import asdict, replace
from typing import Any

from benchmarks.decisions import DecisionFigures
from benchmarks.end_to_end import EndToEndFigures
from benchmarks.figures import Figure, Samples, Spread
from benchmarks.measure import end_to_end_record, record_of_rows
from benchmarks.records import Record, this_machine
from benchmarks.scale import Point, ScaleFigures

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
        events_per_second=rate,
        first_bind_seconds=1.5,
        samples=Samples(count, count, count - 1, rate, (count,) * 9 + (3,)),
        cpu_seconds=4.0,
        first_bind_cpu_seconds=0.5,
        cpu_ms_per_pod=0.4,
        peak_mb=100.0,
        created="before",
        pods_per_node=(2, 2, 2.0),
        pods_per_node_deviation=0.0,
        pods_per_zone=(1_000, 1_000),
        events=10_000,
        moved=0,
        overcommitted=(),
        checks=16,
        last_words="",
    )
    return replace(made, **more)


def ends(*runs: EndToEndFigures) -> Record:
    """A measurement end to end; ours is `policyengine`."""
    found: dict[str, list[EndToEndFigures]] = {}
    for one in runs:
        found.setdefault(one.contestant, []).append(one)
    return end_to_end_record(found, "default", "python -m benchmarks peer-basic", this_machine())


def decided(workload: str, median: float, policy: str = "default") -> Record:
    """A measurement of decisions alone."""
    spread = Spread(median, 2 * median, 3 * median, 100)
    figures = DecisionFigures(
        workload=workload,
        policy=policy,
        nodes=5_000,
        pods=100,
        bound=100,
        decisions_per_second=1e6 / median,
        decision=spread,
        pod_event=spread,
        node_event=spread,
        pods_per_node_max=1,
        checks=20,
        memory_mb=100.0,
    )
    command = f"python -m benchmarks decisions {workload}"
    return Record.made("decisions", f"{workload} {policy}", command, this_machine(), asdict(figures))


def rows(what: str, *figures: Figure) -> Record:
    """A measurement that is told as one number a row."""
    return record_of_rows(what, "", f"python -m benchmarks {what}", this_machine(), figures)


def grown() -> Record:
    """A measurement of scale whose costs grow as the nodes do."""
    by_nodes = tuple(point(nodes, 10_000, nodes / 10) for nodes in (1_000, 5_000, 100_000))
    by_pods = tuple(point(15_000, pods, 900.0) for pods in (10_000, 150_000))
    lost = ("7 nodes, 8 pods: it says nothing for 120 s",)
    figures = ScaleFigures(by_nodes, by_pods, lost)
    return Record.made("scale", "100000/150000", "python -m benchmarks scale", this_machine(), asdict(figures))


def point(nodes: int, pods: int, different: float, identical: float = 80.0) -> Point:
    """One size."""
    return Point(nodes, pods, different, identical, 1.5, 2.1, 1.2, 200.0)
