"""The figures to beat are those of the shared page."""

import re

from benchmarks.peers import PEERS
from benchmarks.workloads import WORKLOADS
from tests.shared_facts import shared


def test_the_figures_to_beat_are_those_of_the_shared_page() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in shared("README.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| (peer-|default pods)", line)
    ]
    assert len(rows) == 8
    for what, size, rate, cpu, memory in rows:
        name = what.partition(":")[0] if what.startswith("peer-") else "peer-basic"
        nodes, pods = (int(number.replace(",", "")) for number in size.split(" / "))
        (peer,) = [one for one in PEERS if (one.workload, one.nodes, one.pods) == (name.split()[0], nodes, pods)]
        assert (peer.binds_per_second, peer.cpu_seconds, peer.memory_mb) == (int(rate), float(cpu), int(memory))
    sizes = {(workload.name, workload.nodes, workload.pods) for workload in WORKLOADS.values()}
    assert {(name, 5_000) for name, nodes, _ in sizes if (name, nodes) == (name, 5_000)} >= {
        (one.workload, 5_000) for one in PEERS if one.nodes == 5_000
    }
