"""The workloads are what they say: sizes, names, requests, and pods that can be placed at all."""

import msgspec
import pytest

from benchmarks.decisions import decisions
from benchmarks.scheduler_perf import GANG_SIZE, WORKLOADS
from benchmarks.workloads import HOSTNAME, MEASURED, ZONE, Workload
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy

SIZE = 24
"""Nodes of a small cluster."""


def small(name: str) -> Workload:
    return WORKLOADS[name].sized(SIZE, 20)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_object_decodes_and_no_two_share_a_name(name: str) -> None:
    workload = small(name)
    nodes = [decode(Node, msgspec.json.encode(item)) for item in workload.node_objects()]
    pods = [decode(Pod, msgspec.json.encode(item)) for item in workload.initial_objects()]
    pods += [decode(Pod, msgspec.json.encode(item)) for item in workload.pod_objects("s")]
    assert len({node.metadata.name for node in nodes}) == len(nodes) == SIZE
    assert len({pod.metadata.name for pod in pods}) == len(pods) == 20 + workload.initial


@pytest.mark.parametrize("name", WORKLOADS)
def test_only_measured_pods_bear_the_measured_name_and_wait(name: str) -> None:
    workload = small(name)
    for pod in workload.pod_objects("s"):
        assert pod["metadata"]["name"].startswith(MEASURED)
        assert pod["spec"]["schedulerName"] == "s" and "nodeName" not in pod["spec"]
    for pod in workload.initial_objects():
        assert not pod["metadata"]["name"].startswith(MEASURED) and pod["spec"]["nodeName"]
    if workload.churn is not None:
        made = [make(7) for make in workload.churn.objects]
        assert all("000007" in item["metadata"]["name"] for item in made)
        assert not any(item["metadata"]["name"].startswith(MEASURED) for item in made)


def test_a_peer_node_has_four_cores_and_its_zone() -> None:
    node = list(WORKLOADS["peer-basic"].sized(25, 1).node_objects())[23]
    assert node["metadata"]["labels"] == {HOSTNAME: "node-000023", ZONE: "zone3"}
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "32Gi", "pods": "110"}


def test_mixed_pods_have_the_shapes_of_the_definition() -> None:
    pods = list(WORKLOADS["peer-mixed"].sized(1, 500).pod_objects("s"))
    sizes = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods]
    assert sizes[0] == {"cpu": "50m", "memory": "100Mi"}
    assert sizes[490] == {"cpu": "55m", "memory": "201Mi"}
    assert len({tuple(size.items()) for size in sizes}) == 500


def test_initial_pods_grow_with_the_nodes_and_stand_on_them_round_robin() -> None:
    workload = WORKLOADS["MixedSchedulingBasePod"].sized(50, 1)
    initial = list(workload.initial_objects())
    assert len(initial) == 100
    assert [pod["spec"]["nodeName"] for pod in initial[48:52]] == [
        "node-000048",
        "node-000049",
        "node-000000",
        "node-000001",
    ]
    kinds = [next(iter(pod["spec"].get("affinity", {"none": 0}))) for pod in initial]
    assert [kinds[i] for i in (0, 20, 40, 60, 80)] == [
        "none",
        "podAffinity",
        "podAntiAffinity",
        "podAffinity",
        "podAntiAffinity",
    ]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_of_a_workload_is_placed_as_a_fresh_evaluator_places_it(name: str) -> None:
    workload = small(name)
    profile = compile_policy(workload.policy) if workload.policy else default_profile()
    figures = decisions(workload, profile)
    assert figures.bound == 20
    assert figures.checks >= 4


def test_a_gang_short_of_a_member_is_not_placed() -> None:
    workload = WORKLOADS["Gang"].sized(60, 3 * GANG_SIZE - 1)
    figures = decisions(workload, compile_policy(workload.policy))
    assert figures.bound == 2 * GANG_SIZE
