"""What plugins say of themselves, so that runs of identical pods are cheap: it is true on random clusters."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import Pod, decode
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.diagnosis.cluster_file import LoadedCluster, load_cluster
from policyengine.framework.plugin import (
    UNCONCERNED,
    FilterPlugin,
    RowFilter,
    RowScore,
    SelectivePlugin,
    TemplateReader,
    extends,
)
from policyengine.framework.reservation import PreBindPlugin, ReservePlugin
from policyengine.plugins.registry import IN_TREE, build
from tests.plugins import random_cluster

PLUGINS = {name: build(name) for name in IN_TREE}
OF_TEMPLATE = [name for name, plugin in PLUGINS.items() if extends(plugin, TemplateReader) and plugin.of_template]
SELECTIVE = [name for name, plugin in PLUGINS.items() if extends(plugin, SelectivePlugin)]
ROW_FILTERS = [name for name, plugin in PLUGINS.items() if extends(plugin, RowFilter)]
ROW_SCORES = [name for name, plugin in PLUGINS.items() if extends(plugin, RowScore)]
SEEDS = st.integers(0, 2**32)


def test_the_plugins_that_a_plain_pod_concerns_are_among_them() -> None:
    assert {"NodeResourcesFit"} <= set(ROW_FILTERS)
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation"} <= set(ROW_SCORES)
    assert {"TaintToleration", "NodeAffinity", "InterPodAffinity", "PodTopologySpread"} <= set(OF_TEMPLATE)
    assert not {"NodeName", "VolumeBinding", "DynamicResources"} & set(OF_TEMPLATE)


@pytest.mark.parametrize("name", OF_TEMPLATE)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_pods_of_a_template_have_one_signature(name: str, seed: int) -> None:
    rng = Random(seed)
    pod = random_cluster.pod(rng, "one")
    other: Any = {"metadata": {**pod["metadata"], "name": "two", "uid": "two", "annotations": {"a": "b"}}}
    other |= {"spec": {**pod["spec"], "nodeName": "n"}, "status": {"nominatedNodeName": "n", "phase": "Pending"}}
    one, two = PodInfo(decode(Pod, pod)), PodInfo(decode(Pod, other))
    assert (one.shape, one.labels) == (two.shape, two.labels)
    assert PLUGINS[name].signature(one) == PLUGINS[name].signature(two)


@pytest.mark.parametrize("name", SELECTIVE)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_a_plugin_has_nothing_to_do_with_pods_of_shapes_that_do_not_concern_it(name: str, seed: int) -> None:
    loaded = load_cluster(random_cluster.cluster(Random(seed), 3, pods=6, pending=4))
    plugin, snapshot = build(name), loaded.view.snapshot()
    assert extends(plugin, SelectivePlugin)
    for pod in loaded.pending:
        if plugin.concerns(pod.shape):
            continue
        if extends(plugin, FilterPlugin):
            assert plugin.signature(pod) is UNCONCERNED
        if extends(plugin, ReservePlugin):
            assert plugin.reserve(pod, snapshot.nodes.names[0], snapshot).is_success
        if extends(plugin, PreBindPlugin):
            assert plugin.plan(pod, snapshot.nodes.names[0], snapshot)[0].is_skip


def test_pods_with_volumes_or_claims_concern_the_plugins_for_them() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    claim = {"name": "c", "resourceClaimName": "gpu"}
    plain, stored, claiming = (
        PodInfo(decode(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [], **more}})).shape
        for more in ({}, {"volumes": [volume]}, {"resourceClaims": [claim]})
    )
    concerned = {name: [PLUGINS[name].concerns(shape) for shape in (plain, stored, claiming)] for name in SELECTIVE}
    assert concerned == {
        "DynamicResources": [False, False, True],
        "NodeVolumeLimits": [False, True, False],
        "VolumeBinding": [False, True, False],
    }


def come_and_go(loaded: LoadedCluster, rng: Random) -> None:
    """Half of the pods that stand go, and those that wait come to some node."""
    view = loaded.view
    for pod in list(view.pods.values()):
        if pod.state is PodState.BOUND and rng.random() < 0.5:
            view.remove_pod(pod.uid)
    for pod in loaded.pending:
        if pod.state is PodState.PENDING:
            view.assume(pod.uid, rng.choice(view.nodes.names))


@pytest.mark.parametrize("name", ROW_FILTERS)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, nodes=st.integers(1, 14))
def test_a_filter_says_of_a_row_what_it_says_of_all_though_pods_come_and_go(name: str, seed: int, nodes: int) -> None:
    loaded = load_cluster(random_cluster.cluster(Random(seed), nodes, pods=24, pending=4))
    plugin, snapshot = build(name), loaded.view.snapshot()
    prepared = [plugin.pre_filter(pod, snapshot) for pod in loaded.pending]
    asked = [(state, plugin.row_filter(state, snapshot)) for status, state in prepared if status.is_success]
    for _ in range(2):
        for state, passes in asked:
            refused = plugin.filter(state, loaded.view.snapshot(), np.arange(nodes)).refused
            assert [passes(row) for row in range(nodes)] == (refused == 0).tolist()
        come_and_go(loaded, Random(seed))


@pytest.mark.parametrize("name", ROW_SCORES)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, nodes=st.integers(1, 14))
def test_a_score_says_of_a_row_what_it_says_of_all_though_pods_come_and_go(name: str, seed: int, nodes: int) -> None:
    loaded = load_cluster(random_cluster.cluster(Random(seed), nodes, pods=24, pending=4))
    plugin, snapshot = build(name), loaded.view.snapshot()
    prepared = [plugin.pre_score(pod, snapshot) for pod in loaded.pending]
    asked = [(state, plugin.row_score(state, snapshot)) for status, state in prepared if status.is_success]
    for _ in range(2):
        for state, points in asked:
            scores = plugin.normalize(state, plugin.score(state, loaded.view.snapshot(), np.arange(nodes)))
            assert [points(row) for row in range(nodes)] == scores.tolist()
        come_and_go(loaded, Random(seed))
