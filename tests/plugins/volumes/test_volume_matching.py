"""Many local volumes: those of one node are looked at together, and the smallest that will do is taken first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policyengine.cluster.storage_objects import PersistentVolumeClaim
from policyengine.cluster.view import ClusterView
from policyengine.plugins.volumes import volume_matching
from policyengine.plugins.volumes.volume_matching import StaticMatch
from tests.builders import make_node
from tests.scheduler.storage import claim, volume

NODES, EACH = 5, 20


def cluster() -> ClusterView:
    """Each node has volumes of 1 to 20 Gi, the largest known first."""
    view = ClusterView()
    for number in range(NODES):
        view.add_or_update_node(make_node(f"n{number}").label("kubernetes.io/hostname", f"n{number}").build())
    for size in reversed(range(EACH)):
        for number in range(NODES):
            view.set_object(
                "PersistentVolume", volume(f"v{number}-{size + 1}", node=f"n{number}", size=f"{size + 1}Gi")
            )
    return view


def taken(view: ClusterView, *claims: PersistentVolumeClaim) -> list[tuple[str | None, ...]]:
    """Per node the volumes that the claims take, the smallest claim first."""
    matches, which = StaticMatch(claims, view.snapshot()).matches(view.nodes, np.arange(NODES))
    return [matches[one] for one in which.tolist()]


def test_each_claim_takes_the_smallest_volume_that_is_left_on_the_node() -> None:
    view = cluster()
    assert taken(view, claim("a", size="3Gi"), claim("b"), claim("c"), claim("d", size="21Gi")) == [
        (f"v{number}-1", f"v{number}-2", f"v{number}-3", None) for number in range(NODES)
    ]


def test_a_volume_that_is_meant_for_the_claim_is_the_only_one_that_will_do() -> None:
    view = cluster()
    view.set_object("PersistentVolume", volume("v2-7", 2, node="n2", size="7Gi", taken_by="a", with_uid=False))
    found = taken(view, claim("a"))
    assert found == [(None,), (None,), ("v2-7",), (None,), (None,)]
    assert taken(view, claim("b", size="7Gi"))[2] == ("v2-8",), "nobody else takes it"
    view.set_object("PersistentVolume", volume("v2-7", 3, node="n2", size="7Gi"))
    assert taken(view, claim("b", size="7Gi"))[2] == ("v2-7",)


def test_what_is_asked_of_nodes_follows_from_the_nodes_and_not_from_the_volumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, asked = cluster(), 0
    mask = volume_matching.reach_mask

    def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return mask(*arguments)

    monkeypatch.setattr(volume_matching, "reach_mask", counted)
    taken(view, *(claim(f"c{number}") for number in range(10)))
    assert asked == NODES
