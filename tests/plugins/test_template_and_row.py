"""What plugins say of themselves, so that runs of identical pods are cheap: it is true on random clusters."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import Pod, decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.plugin import IdlePlugin, RowFilter, RowScore, TemplateReader, extends
from policyengine.plugins.registry import IN_TREE, build
from policyengine.scheduler.cluster_file import load_cluster
from tests.plugins import random_cluster

PLUGINS = {name: build(name) for name in IN_TREE}
OF_TEMPLATE = [name for name, plugin in PLUGINS.items() if extends(plugin, TemplateReader) and plugin.of_template]
ROW_FILTERS = [name for name, plugin in PLUGINS.items() if extends(plugin, RowFilter)]
ROW_SCORES = [name for name, plugin in PLUGINS.items() if extends(plugin, RowScore)]
SEEDS = st.integers(0, 2**32)


def test_the_plugins_that_a_plain_pod_concerns_are_among_them() -> None:
    assert {"NodeResourcesFit"} <= set(ROW_FILTERS)
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation"} <= set(ROW_SCORES)
    assert {"TaintToleration", "NodeAffinity", "InterPodAffinity", "PodTopologySpread"} <= set(OF_TEMPLATE)
    assert not {"NodeName", "VolumeBinding", "DynamicResources"} & set(OF_TEMPLATE)
    assert [name for name, plugin in PLUGINS.items() if extends(plugin, IdlePlugin)] == ["InterPodAffinity"]


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


@pytest.mark.parametrize("name", ROW_FILTERS)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, nodes=st.integers(1, 14))
def test_a_filter_says_of_a_row_what_it_says_of_all(name: str, seed: int, nodes: int) -> None:
    loaded = load_cluster(random_cluster.cluster(Random(seed), nodes, pods=24, pending=2))
    plugin, snapshot = build(name), loaded.view.snapshot()
    for pod in loaded.pending:
        status, state = plugin.pre_filter(pod, snapshot)
        if status.is_success:
            refused = plugin.filter(state, snapshot, np.arange(nodes)).refused
            said = [plugin.passes(state, snapshot, row) for row in range(nodes)]
            assert said == (refused == 0).tolist()


@pytest.mark.parametrize("name", ROW_SCORES)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, nodes=st.integers(1, 14))
def test_a_score_says_of_a_row_what_it_says_of_all(name: str, seed: int, nodes: int) -> None:
    loaded = load_cluster(random_cluster.cluster(Random(seed), nodes, pods=24, pending=2))
    plugin, snapshot = build(name), loaded.view.snapshot()
    for pod in loaded.pending:
        status, state = plugin.pre_score(pod, snapshot)
        if status.is_success:
            scores = plugin.normalize(state, plugin.score(state, snapshot, np.arange(nodes)))
            assert [plugin.points(state, snapshot, row) for row in range(nodes)] == scores.tolist()
