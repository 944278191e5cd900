"""VolumeBinding's score by storage capacity, which the argument `shape` switches on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policyengine.cluster.objects import decode
from policyengine.cluster.storage_objects import CSIDriver, CSIStorageCapacity
from policyengine.cluster.view import ClusterView
from policyengine.framework.plugin import ScorePlugin
from policyengine.plugins.registry import build, default_profile
from tests.builders import make_node, make_pod
from tests.scheduler.storage import claim, storage_class, volume

FULLER_IS_BETTER = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
EMPTIER_IS_BETTER = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


def capacity(name: str, node: str, left: str, of: str = "made") -> CSIStorageCapacity:
    return decode(
        CSIStorageCapacity,
        {
            "metadata": {"name": name, "namespace": "default"},
            "storageClassName": of,
            "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}},
            "capacity": left,
        },
    )


def cluster(*items: Any) -> ClusterView:
    driver = {"metadata": {"name": "example.com/disks"}, "spec": {"storageCapacity": True}}
    view = ClusterView()
    for name in ("n1", "n2"):
        view.add_or_update_node(make_node(name).label("kubernetes.io/hostname", name).build())
    classes = [storage_class("local"), storage_class("slow"), storage_class("made", "example.com/disks")]
    for item in (*classes, decode(CSIDriver, driver), *items):
        view.set_object(type(item).__name__, item)
    return view


def scores(view: ClusterView, shape: list[dict[str, int]], *claims: str) -> list[int] | None:
    plugin = build("VolumeBinding", {"shape": shape})
    pod = make_pod("p")
    for name in claims:
        pod.pvc(name)
    snapshot = view.snapshot()
    status, state = plugin.pre_score(pod.info(), snapshot)
    if status.is_skip:
        return None
    found: list[int] = plugin.score(state, snapshot, np.arange(2)).tolist()
    return found


def test_by_default_it_scores_nothing() -> None:
    assert not isinstance(build("VolumeBinding"), ScorePlugin)
    assert "VolumeBinding" not in [plugin.name for plugin, _ in default_profile().scores]
    assert "VolumeBinding" in [plugin.name for plugin in default_profile().pre_bind]


def test_static_volumes_score_by_how_full_they_would_be() -> None:
    view = cluster(claim("c", size="1Gi"), volume("v1", size="2Gi", node="n1"), volume("v2", size="4Gi", node="n2"))
    assert scores(view, FULLER_IS_BETTER, "c") == [50, 25]
    assert scores(view, EMPTIER_IS_BETTER, "c") == [50, 75]


def test_volumes_of_a_class_are_added_up_and_classes_averaged_and_rounded() -> None:
    view = cluster(
        claim("a", size="1Gi"),
        claim("b", size="2Gi"),
        claim("s", of="slow", size="1Gi"),
        volume("v1", size="2Gi"),
        volume("v2", size="4Gi"),
        volume("v3", of="slow", size="3Gi"),
    )
    # local: 3 of 6 Gi are 50; slow: 1 of 3 Gi are 33; their mean 41.5 is 42.
    assert scores(view, FULLER_IS_BETTER, "a", "b", "s") == [42, 42]


def test_volumes_to_be_made_score_by_what_the_driver_reports() -> None:
    view = cluster(claim("c", of="made", size="1Gi"), capacity("one", "n1", "10Gi"), capacity("two", "n2", "4Gi"))
    assert scores(view, EMPTIER_IS_BETTER, "c") == [90, 75]


def test_the_claims_of_a_class_share_what_is_left() -> None:
    view = cluster(claim("c", of="made", size="1Gi"), claim("d", of="made", size="2Gi"), capacity("one", "n1", "10Gi"))
    assert scores(view, FULLER_IS_BETTER, "c", "d") == [30, 0]


def test_more_than_is_left_counts_as_full_and_a_huge_disk_overflows_nothing() -> None:
    view = cluster(
        claim("c", of="made", size="3Gi"),
        claim("d", of="made", size="3Gi"),
        capacity("one", "n1", "4Gi"),
        capacity("two", "n2", "8Ei"),
    )
    assert scores(view, FULLER_IS_BETTER, "c", "d") == [100, 0]


@pytest.mark.parametrize("bound", [True, False])
def test_pods_whose_claims_are_bound_or_absent_have_no_score(bound: bool) -> None:
    view = cluster(claim("c", volume="v", bound=True), volume("v", taken_by="c")) if bound else cluster()
    assert scores(view, FULLER_IS_BETTER, "c") is None
