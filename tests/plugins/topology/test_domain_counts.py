"""Domains whose counts follow the pods that come and go say what newly counted ones say."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.diagnosis.explain import load_cluster
from policyengine.framework.status import Rows, State
from policyengine.plugins.registry import build
from tests.plugins import random_cluster

SEEDS = st.integers(0, 2**32)
COUNTING = ["InterPodAffinity", "PodTopologySpread"]


@pytest.mark.parametrize("name", COUNTING)
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, nodes=st.integers(1, 24))
def test_a_state_that_followed_the_pods_says_what_a_new_one_says(name: str, seed: int, nodes: int) -> None:
    rng = Random(seed)
    loaded = load_cluster(random_cluster.cluster(rng, nodes, pods=24, pending=3))
    plugin: Any = build(name)
    view = loaded.view
    every_row = np.arange(nodes)
    for pod in loaded.pending:
        snapshot = view.snapshot()
        for prepare, answer in ((plugin.pre_filter, refused), (plugin.pre_score, raw)):
            status, state = prepare(pod, snapshot)
            before = answer(plugin, state, snapshot, every_row) if status.is_success else None
            for step in range(4):
                rows = disturb(view, rng, f"{pod.uid}-{step}")
                if state is None:
                    continue
                status, touched = plugin.update(state, snapshot, np.array(rows, dtype=np.int64))
                status_anew, state_anew = prepare(pod, snapshot)
                assert status.code is status_anew.code
                if not status_anew.is_success:
                    before = None
                    continue
                now = answer(plugin, state, snapshot, every_row)
                assert now == answer(plugin, state_anew, snapshot, every_row)
                if before is not None and touched is not None:
                    assert {row for row in range(nodes) if now[row] != before[row]} <= set(map(int, touched))
                before = now


def refused(plugin: Any, state: State, snapshot: Snapshot, rows: Rows) -> list[int]:
    answer: list[int] = plugin.filter(state, snapshot, rows).refused.tolist()
    return answer


def raw(plugin: Any, state: State, snapshot: Snapshot, rows: Rows) -> list[object]:
    answer: list[object] = plugin.score(state, snapshot, rows).tolist()
    return answer


def disturb(view: ClusterView, rng: Random, name: str) -> list[int]:
    """Pods come and go, and now and then a node changes its zone; the rows where they did."""
    nodes = view.nodes
    positions = nodes.pod_journal.position, nodes.node_journal.position
    for number in range(rng.randint(1, 3)):
        placed = [pod for pod in view.pods.values() if pod.node_name]
        if placed and rng.random() < 0.4:
            view.remove_pod(rng.choice(placed).uid)
        else:
            pod = random_cluster.pod(rng, f"{name}-{number}", rng.choice(nodes.names))
            pod["metadata"]["resourceVersion"] = "1"
            view.add_or_update_pod(decode(Pod, pod))
    if rng.random() < 0.2:
        node = rng.choice(nodes.objects)
        labels = {**node.metadata.labels, "topology.kubernetes.io/zone": rng.choice("abx")}
        view.add_or_update_node(replace(node, metadata=replace(node.metadata, labels=labels, resource_version=name)))
    rows = nodes.pod_journal.listed_since(positions[0]), nodes.node_journal.listed_since(positions[1])
    return sorted({row for some in rows for row in some or ()})
