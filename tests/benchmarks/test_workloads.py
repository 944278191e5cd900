"""The workloads are what they say: sizes, names, requests, and pods that can be placed at all."""

import msgspec
import pytest

from benchmarks.decisions import decisions
from benchmarks.workloads import HOSTNAME, MEASURED, WORKLOADS, ZONE, Workload
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.plugins.registry import default_profile

PEER_SIZES = {
    "peer-basic": (5_000, 10_000),
    "peer-mixed": (5_000, 10_000),
    "peer-spread": (5_000, 5_000),
    "peer-affinity": (5_000, 5_000),
    "peer-antiaffinity": (5_000, 2_000),
    "peer-nodeaffinity": (5_000, 5_000),
}


SIZE = 24
"""Nodes of a small cluster."""


def small(name: str) -> Workload:
    return WORKLOADS[name].sized(SIZE, 20)


@pytest.mark.parametrize("name", PEER_SIZES)
def test_a_peer_workload_has_the_size_kube_scheduler_was_measured_at(name: str) -> None:
    workload = WORKLOADS[name]
    assert (workload.nodes, workload.pods) == PEER_SIZES[name]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_object_decodes_and_no_two_share_a_name(name: str) -> None:
    workload = small(name)
    nodes = [decode(Node, msgspec.json.encode(item)) for item in workload.node_objects()]
    pods = [decode(Pod, msgspec.json.encode(item)) for item in workload.pod_objects("s")]
    assert len({node.metadata.name for node in nodes}) == len(nodes) == SIZE
    assert len({pod.metadata.name for pod in pods}) == len(pods) == 20


@pytest.mark.parametrize("name", WORKLOADS)
def test_measured_pods_bear_the_measured_name_and_wait(name: str) -> None:
    workload = small(name)
    for pod in workload.pod_objects("s"):
        assert pod["metadata"]["name"].startswith(MEASURED)
        assert pod["spec"]["schedulerName"] == "s" and "nodeName" not in pod["spec"]


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


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_of_a_workload_is_placed_as_a_fresh_evaluator_places_it(name: str) -> None:
    figures = decisions(small(name), default_profile())
    assert figures.bound == 20
    assert figures.checks >= 4
