"""A plugin for pods of some shapes alone has nothing to do with others."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.dump import load_cluster, read_objects
from policyengine.framework.plugin import UNCONCERNED, FilterPlugin, extends
from policyengine.framework.reservation import PreBindPlugin, ReservePlugin
from policyengine.plugins.registry import build
from tests.plugins import random_cluster

PLUGINS = {name: build(name) for name in ("DynamicResources", "NodeVolumeLimits", "VolumeBinding")}
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("name", PLUGINS)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_a_plugin_has_nothing_to_do_with_pods_that_do_not_concern_it(name: str, seed: int) -> None:
    loaded = load_cluster(read_objects(random_cluster.cluster(Random(seed), 3, pods=6, pending=4)))
    plugin, snapshot = build(name), loaded.view.snapshot()
    assert extends(plugin, FilterPlugin)
    for pod in loaded.pending:
        if plugin.signature(pod) is not UNCONCERNED:
            continue
        if extends(plugin, ReservePlugin):
            assert plugin.reserve(pod, snapshot.nodes.names[0], snapshot).is_success
        if extends(plugin, PreBindPlugin):
            assert plugin.plan(pod, snapshot.nodes.names[0], snapshot)[0].is_skip


def test_pods_with_volumes_or_claims_concern_the_plugins_for_them() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    claim = {"name": "c", "resourceClaimName": "gpu"}
    plain, stored, claiming = (
        PodInfo(decode(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [], **more}}))
        for more in ({}, {"volumes": [volume]}, {"resourceClaims": [claim]})
    )
    concerned = {
        name: [plugin.signature(pod) is not UNCONCERNED for pod in (plain, stored, claiming)]
        for name, plugin in PLUGINS.items()
    }
    assert concerned == {
        "DynamicResources": [False, False, True],
        "NodeVolumeLimits": [False, True, False],
        "VolumeBinding": [False, True, False],
    }
