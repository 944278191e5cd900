"""The workloads of scheduler_perf are those the shared page names, and each runs end to end."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.end_to_end import Contestant, run_on
from benchmarks.peers import FLOORS, PEERS
from benchmarks.scheduler_perf import GANG_SIZE, PERF, WORKLOADS, Workload
from benchmarks.workloads import PEERS as PEER_WORKLOADS
from policyengine.simulator.sandbox import world, write_kubeconfig
from tests.shared_facts import shared

FLOOR = "default-scheduler"
NAMES = [workload.name for workload in PERF]
_LINE = re.compile(
    r"(?P<name>Preferred \(anti-\)affinity|[A-Z]\w+) (?P<nodes>\d+)(?: nodes)? ?/ ?"
    r"(?P<initial>[^/]+?)(?: initial)? ?/ ?"
    r"(?P<pods>\d+)(?P<rest>[^:.]*(?:\.name[^:]*)?): (?P<floor>\d+)(?:, preferred (?P<preferred>\d+))?"
)
"""`NAME nodes/initial/measured (what they are): floor`."""


def told() -> dict[str, re.Match[str]]:
    """{name: what the shared page says of the workload}."""
    text = shared("kube-scheduler-1.36.md").read_text(encoding="utf-8")
    section = text.partition("## Workloads of its benchmark")[2].partition("Throughput there")[0]
    found = {match["name"]: match for match in _LINE.finditer(section)}
    assert len(found) == 11, sorted(found)
    preferred = found.pop("Preferred (anti-)affinity")
    found["PreferredPodAffinity"] = found["PreferredPodAntiAffinity"] = preferred
    found["PreferredTopologySpreading"] = found["TopologySpreading"]
    return found


def initial_pods(text: str) -> int:
    """`1000`, `–` for none, `5 kinds × 2000`."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return numbers[0] * numbers[1] if len(numbers) == 2 else numbers[0] if numbers else 0


def test_every_workload_has_the_sizes_the_page_names() -> None:
    for name, match in told().items():
        workload = WORKLOADS[name]
        beside = workload.name == "Daemonset"  # the one big node comes on top
        assert workload.nodes == int(match["nodes"]) + beside, name
        assert workload.initial == initial_pods(match["initial"]), name
        assert workload.pods == int(match["pods"]), name


def test_every_floor_of_its_ci_is_the_one_the_page_names() -> None:
    found = {name: int(match["floor"]) for name, match in told().items()}
    found["PreferredTopologySpreading"] = int(told()["TopologySpreading"]["preferred"])
    assert found == FLOORS
    assert set(NAMES) == {*FLOORS, "Gang"}


def spec_of(name: str, i: int = 0) -> dict[str, Any]:
    spec: dict[str, Any] = list(WORKLOADS[name].sized(60, i + 1).pod_objects("s"))[i]["spec"]
    return spec


def term(name: str, kind: str) -> tuple[str, dict[str, str]]:
    """(topology key, labels) of a workload's one required term."""
    (found,) = spec_of(name)["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"]
    return found["topologyKey"], found["labelSelector"]["matchLabels"]


def test_the_pods_are_what_the_page_says_of_them() -> None:
    default = {"cpu": "100m", "memory": "500Mi"}
    for name in NAMES:
        container = spec_of(name)["containers"][0]
        assert container["resources"] == {"requests": default, "limits": default}, name
        assert [port["containerPort"] for port in container["ports"]] == [80]
    assert term("PodAntiAffinity", "podAntiAffinity") == ("kubernetes.io/hostname", {"color": "green"})
    assert term("PodAffinity", "podAffinity") == ("topology.kubernetes.io/zone", {"color": "blue"})
    (preferred,) = spec_of("PreferredPodAffinity")["affinity"]["podAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert preferred["weight"] == 1
    assert preferred["podAffinityTerm"] == {
        "labelSelector": {"matchLabels": {"color": "red"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    (constraint,) = spec_of("TopologySpreading")["topologySpreadConstraints"]
    assert (constraint["maxSkew"], constraint["whenUnsatisfiable"]) == (5, "DoNotSchedule")
    assert constraint["labelSelector"]["matchLabels"] == {"color": "blue"}
    zones = [
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in WORKLOADS["PodAffinity"].node_objects()
    ]
    assert set(zones) == {"zone1"}
    spread = WORKLOADS["TopologySpreading"].node_objects()
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in spread}) == 3


def test_what_churns_is_what_the_page_says() -> None:
    too_big, preemptor = WORKLOADS["Unschedulable"].churn, WORKLOADS["PreemptionAsync"].churn
    assert too_big is not None and preemptor is not None
    assert (too_big.every, preemptor.every) == (0.2, 0.2)
    (pod,) = [make(0) for make in too_big.objects]
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "9"
    (high,) = [make(0) for make in preemptor.objects]
    assert high["spec"]["priority"] == 10
    assert high["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "3"
    low = list(WORKLOADS["PreemptionAsync"].sized(10, 1).initial_objects())
    assert len(low) == 40 and {item["spec"]["containers"][0]["resources"]["requests"]["cpu"] for item in low} == {
        "900m"
    }
    mixed = WORKLOADS["MixedChurn"].churn
    assert mixed is not None and (mixed.every, mixed.recreate) == (1.0, True)
    assert [make(0)["kind"] for make in mixed.objects] == ["Node", "Pod", "Service"]


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
    measured = {(one.workload, one.nodes, one.pods) for one in PEERS if one.nodes == 5_000}
    assert measured <= {(one.name, one.nodes, one.pods) for one in PEER_WORKLOADS if not one.initial}


# End to end, each at a tiny scale: a server here, the scheduler in a process of its own


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with world("embedded") as running:
        path = tmp_path / "kubeconfig"
        write_kubeconfig(path, running.kubeconfig)
        yield path


def tiny(name: str) -> Workload:
    """Room for every pod, and initial pods where the workload has them."""
    return WORKLOADS[name].sized(50, 20)


@pytest.mark.parametrize("name", ["Daemonset", "Gang", "MixedChurn"])
async def test_a_workload_runs_end_to_end(name: str, kubeconfig: Path) -> None:
    workload = replace(tiny(name), during=NAMES.index(name) % 2 == 1)
    policy = workload.policy
    run = await run_on(workload, Contestant("ours", "gangs" if policy else FLOOR, policy), kubeconfig)
    assert (run.bound, run.events) == (20, 20), run.last_words
    assert run.checks > 0
    assert run.created == ("during" if workload.during else "before")
    if name == "Daemonset":
        assert run.pods_per_node[:2] == (0, 20)
    assert 20 % GANG_SIZE == 0
