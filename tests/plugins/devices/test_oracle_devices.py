"""DynamicResources and NodeDeclaredFeatures say, on random clusters, what the naive oracle says."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from policyengine.cluster.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from tests.plugins import random_cluster
from tests.plugins.devices import oracle_devices, random_devices

Json = dict[str, Any]
PLUGINS = ("DynamicResources", "NodeDeclaredFeatures")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
CLUSTERS, SEEDS = 100, 4


def random_objects(rng: Random) -> Json:
    names = [f"node-{number}" for number in range(rng.randint(1, 5))]
    nodes = [random_cluster.node(rng, name) for name in names]
    for node in nodes:
        node["status"]["declaredFeatures"] = sorted(rng.sample(FEATURES, rng.randint(0, 2)))
    space = "default"
    return {
        "nodes": nodes,
        "deviceClass": random_devices.device_class(rng),
        "slices": [random_devices.resource_slice(rng, name) for name in names if rng.random() < 0.9],
        "deviceClaims": [random_devices.claim(rng, space, name, names) for name in random_devices.CLAIMS],
        "pending": [random_pod(rng, f"p-{number}") for number in range(6)],
    }


def random_pod(rng: Random, name: str) -> Json:
    pod = random_cluster.pod(rng, name)
    pod["metadata"]["namespace"] = "default"
    pod = random_devices.using(pod, rng)
    if rng.random() < 0.3:
        rules = [{"action": rng.choice(("RestartAllContainers", "Restart"))}]
        pod["spec"]["containers"][0]["restartPolicyRules"] = rules
    if rng.random() < 0.3:
        pod["spec"] |= {"hostNetwork": True, "hostUsers": rng.random() < 0.5}
    return pod


def view_of(objects: Json) -> ClusterView:
    view = ClusterView()
    for node in objects["nodes"]:
        view.add_or_update_node(decode(Node, node))
    view.set_object("DeviceClass", decode(DeviceClass, objects["deviceClass"]))
    for one in objects["slices"]:
        view.set_object("ResourceSlice", decode(ResourceSlice, one))
    for claim in objects["deviceClaims"]:
        view.set_object("ResourceClaim", decode(ResourceClaim, claim))
    for pod in objects["pending"]:
        view.add_or_update_pod(decode(Pod, pod))
    return view


@pytest.mark.parametrize("seed", range(SEEDS))
def test_verdicts_and_reasons_are_those_of_the_oracle(seed: int) -> None:
    profile = in_tree_profile("devices", "s", "", {name: (build(name), None) for name in PLUGINS})
    seen: Counter[str] = Counter()
    for number in range(CLUSTERS):
        objects = random_objects(Random(seed * CLUSTERS + number))
        devices, view = oracle_devices.Devices(objects), view_of(objects)
        evaluator, snapshot = Evaluator(profile), view.snapshot()
        for pod in objects["pending"]:
            diagnosis = evaluator.filter(view.pods[pod["metadata"]["uid"]], snapshot)
            assert diagnosis.pre_filter is None
            for node in objects["nodes"]:
                expected = oracle_devices.refusal(devices, pod, node) or oracle_devices.lacks_features(pod, node)
                status = diagnosis.refusal(snapshot.nodes.row_of[node["metadata"]["name"]])
                told = None if status.is_success else (status.plugin, status.code.wire_name, status.reasons)
                assert told == expected, (seed, number, pod, node)
                seen[expected[2][0] if expected else "passed"] += 1
    print(seen)
    assert len(seen) == 4
    assert min(seen.values()) >= 10, seen
