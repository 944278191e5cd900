"""The volume plugins say, on random clusters, what the naive oracle says."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.plugins.registry import build, in_tree_profile
from tests.plugins import oracle, random_cluster
from tests.plugins.volumes import oracle_volumes, random_storage

Json = dict[str, Any]
PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
CLUSTERS, SEEDS = 150, 4
KINDS: dict[str, type[Any]] = {
    "claims": PersistentVolumeClaim,
    "volumes": PersistentVolume,
    "classes": StorageClass,
    "csiNodes": CSINode,
    "csiDrivers": CSIDriver,
    "capacities": CSIStorageCapacity,
    "attachments": VolumeAttachment,
}


def random_objects(rng: Random) -> Json:
    names = [f"node-{number}" for number in range(rng.randint(1, 6))]
    claims = [(space, name) for space in random_cluster.NAMESPACES[:2] for name in random_storage.CLAIMS]
    plain = [random_cluster.pod(rng, f"p-{number}") for number in range(10)]
    pods = [random_storage.claims(pod, rng) for pod in plain]
    for pod in pods:
        pod["metadata"]["namespace"] = rng.choice(random_cluster.NAMESPACES[:2])
        pod["spec"].pop("nodeName", None)
    for pod in pods[4:]:
        pod["spec"]["nodeName"] = rng.choice(names)
    return {
        "nodes": [random_cluster.node(rng, name) for name in names],
        "pods": pods[4:],
        "pending": pods[:4],
        "claims": [random_storage.claim(rng, *key) for key in claims if rng.random() < 0.95],
        "volumes": [random_storage.volume(rng, name) for name in random_storage.VOLUMES],
        "classes": random_storage.storage_classes(),
        "csiNodes": [random_storage.csi_node(rng, name) for name in names if rng.random() < 0.6],
        "csiDrivers": [random_storage.csi_driver(rng)] if rng.random() < 0.8 else [],
        "capacities": [random_storage.storage_capacity(rng)],
        "attachments": [random_storage.attachment(rng)],
    }


def view_of(objects: Json) -> ClusterView:
    view = ClusterView()
    for node in objects["nodes"]:
        view.add_or_update_node(decode(Node, node))
    for key, kind in KINDS.items():
        for item in objects[key]:
            view.set_object(kind.__name__, decode(kind, item))
    for pod in (*objects["pods"], *objects["pending"]):
        view.add_or_update_pod(decode(Pod, pod))
    return view


def told(diagnosis: Diagnosis, row: int) -> tuple[str, str, tuple[str, ...]] | None:
    status = diagnosis.refusal(row)
    return None if status.is_success else (status.plugin, status.code.wire_name, tuple(sorted(status.reasons)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_verdicts_and_reasons_are_those_of_the_oracle(seed: int) -> None:
    profile = in_tree_profile("volumes", "s", "", {name: (build(name), None) for name in PLUGINS})
    seen: Counter[str] = Counter()
    for number in range(CLUSTERS):
        objects = random_objects(Random(seed * CLUSTERS + number))
        storage, view = oracle_volumes.Storage(objects), view_of(objects)
        evaluator, snapshot = Evaluator(profile), view.snapshot()
        for pod in objects["pending"]:
            diagnosis = evaluator.filter(view.pods[pod["metadata"]["uid"]], snapshot)
            whole = oracle_volumes.refused_as_a_whole(storage, pod)
            assert (None if diagnosis.pre_filter is None else told(diagnosis, 0)) == whole, (objects, pod)
            expected = {} if whole else oracle.refusals(storage, pod, oracle_volumes.FILTERS)
            for name, refusal in expected.items():
                assert told(diagnosis, snapshot.nodes.row_of[name]) == refusal, (number, pod, name)
            seen.update(["whole" if whole else ""] + [one[0] if one else "passed" for one in expected.values()])
    print(seen)
    assert min(seen[name] for name in (*PLUGINS, "whole", "passed")) >= 10, seen
