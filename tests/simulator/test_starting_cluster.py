"""What a sandbox begins with, as objects that a server takes anew."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.diagnosis.dump import ClusterShapeError
from policyengine.simulator.starting_cluster import of_cluster, of_nodes

Json = dict[str, Any]


def named(kind: str, name: str, namespace: str = "", **fields: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    server = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": kind, "metadata": {"name": name, **place, **server}, **fields}


def test_nodes_are_taken_as_they_are_with_a_host_name() -> None:
    gpu = named("Node", "g", status={"capacity": {"nvidia.com/gpu": 8}})
    [(path, node)] = of_nodes(gpu)
    assert path == "/api/v1/nodes" and node["status"] == {"capacity": {"nvidia.com/gpu": 8}}
    assert node["metadata"] == {"name": "g", "labels": {"kubernetes.io/hostname": "g"}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "List", "items": []}, "no Node is there"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "a `Pod` is no Node"),
        ({"kind": "Node", "metadata": {}}, "node 1 has no name"),
        ([], "a cluster is a JSON object"),
    ],
)
def test_a_file_that_holds_no_nodes_is_told(given: Any, told: str) -> None:
    with pytest.raises(ClusterShapeError, match=told):
        of_nodes(given)


def test_a_dump_comes_in_an_order_that_a_server_takes_and_without_its_words() -> None:
    owner = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "1"}]}
    pod = named("Pod", "p", "team", spec={"priority": 7, "priorityClassName": "high"}, status={"phase": "Running"})
    pod["metadata"] |= owner
    cluster = {
        "pods": [pod, named("Pod", "done", "team", status={"phase": "Succeeded"})],
        "nodes": [named("Node", "n")],
        "persistentVolumes": [named("PersistentVolume", "v", spec={"claimRef": {"name": "c", "uid": "old"}})],
    }
    found = of_cluster(cluster)
    assert [path.rpartition("/")[2] for path, _ in found] == [
        *("namespaces", "priorityclasses", "nodes", "persistentvolumes", "pods")
    ]
    objects = {path.rpartition("/")[2]: item for path, item in found}
    assert objects["pods"]["metadata"] == {"name": "p", "namespace": "team"}
    assert objects["pods"]["spec"] == {"priorityClassName": "high"} and "status" not in objects["pods"]
    assert objects["priorityclasses"]["value"] == 7
    assert objects["persistentvolumes"]["spec"]["claimRef"] == {"name": "c"}
