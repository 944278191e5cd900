"""Objects of real clusters: what kube-apiserver 1.36 answered, and the golden files' clusters."""

import gzip
import json

import pytest

from policyengine.cluster.consistency import validate_view
from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from tests.shared_facts import shared


def objects_in(value):
    """Every object of a kind we decode, however deep in the recording, items of lists included."""
    if isinstance(value, dict):
        kind = value.get("kind", "")
        if kind in STRUCTS and isinstance(value.get("metadata"), dict) and value["metadata"].get("name"):
            yield kind, value
        if kind.endswith("List") and kind.removesuffix("List") in STRUCTS:
            yield from ((kind.removesuffix("List"), item) for item in value.get("items") or ())
        for inner in value.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)


def test_what_a_real_api_server_sends_decodes():
    found = list(objects_in(json.loads(shared("recorded/apiserver-1.36.json").read_text())))
    assert {"Pod", "Node"} <= {kind for kind, _ in found}
    for kind, item in found:
        decoded = decode(STRUCTS[kind], item)
        assert decoded == decode(STRUCTS[kind], json.dumps(item).encode())
        assert decoded.metadata.name == item["metadata"]["name"]


def golden(category):
    path = shared(f"golden/{category}.jsonl.gz")
    with gzip.open(path, "rt") as lines:
        yield from (json.loads(line) for line in lines)


def view_of(cluster):
    view = ClusterView()
    for pod in cluster["pods"]:
        view.add_or_update_pod(decode(Pod, pod))
    for node in cluster["nodes"]:
        view.add_or_update_node(decode(Node, node))
    return view


CATEGORIES = ["images", "mixed", "nodeaffinity", "podaffinity", "ports", "preemption", "spread", "taints", "volumes"]


@pytest.mark.parametrize("category", CATEGORIES)
def test_golden_clusters_fill_a_view_that_holds(category):
    for cluster, _ in zip(golden(category), range(3), strict=False):
        view = view_of(cluster)
        validate_view(view)
        assert view.nodes.n == len(cluster["nodes"])
        assert sum(view.nodes.pod_count) == len(cluster["pods"])


def shortages(view, row, pod):
    """NodeResourcesFit in one sentence a resource, straight from the counts."""
    nodes, reasons = view.nodes, set()
    if nodes.pod_count[row] + 1 > nodes.allowed_pods[row]:
        reasons.add("Too many pods")
    for resource, amount in pod.requests.items():
        if amount > 0 and amount > nodes.allocatable(resource)[row] - nodes.requested(resource)[row]:
            reasons.add(f"Insufficient {resource}")
    return reasons


@pytest.mark.parametrize("category", ["resources", "mixed"])
def test_kube_scheduler_finds_the_same_shortages(category):
    asked = 0
    for cluster in golden(category):
        view = view_of(cluster)
        for pending, result in zip(cluster["pending"], cluster["result"], strict=True):
            if result.get("preFilter"):
                continue
            pod = PodInfo(decode(Pod, pending))
            for row, name in enumerate(view.nodes.names):
                refusal = result["rejected"].get(name)
                if refusal is None or refusal["plugin"] == "NodeResourcesFit":
                    expected = set(refusal["reasons"]) if refusal else set()
                    assert shortages(view, row, pod) == expected
                    asked += 1
    assert asked > 100
