"""VolumeRestrictions: volumes of one disk are held against each other, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from policyengine.plugins.volumes import volume_restrictions
from tests.builders import PodBuilder, make_node, make_pod


def with_disks(name: str, *sources: dict[str, Any]) -> PodBuilder:
    pod = make_pod(name)
    for place, source in enumerate(sources):
        pod.volume(f"v{place}", **source)
    return pod


def iscsi(iqn: str, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "readOnly": read_only}}


def rbd(image: str, *monitors: str, read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"image": image, "pool": "p", "monitors": list(monitors), "readOnly": read_only}}


GCE, EBS = {"gcePersistentDisk": {"pdName": "d"}}, {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}
PLAIN = {"configMap": {"name": "d"}}


def refused(standing: PodBuilder, *sources: dict[str, Any]) -> bool:
    """Whether the node on which a pod stands is refused to one with these volumes."""
    view = ClusterView()
    view.add_or_update_node(make_node("n").build())
    view.add_or_update_pod(standing.node("n").build())
    evaluator = Evaluator(in_tree_profile("p", "s", "", {"VolumeRestrictions": (build("VolumeRestrictions"), None)}))
    return not evaluator.filter(with_disks("p", *sources).info(), view.snapshot()).refusal(0).is_success


@pytest.mark.parametrize(
    ("theirs", "mine", "answer"),
    [
        ([iscsi("a")], [iscsi("b"), iscsi("a")], True),
        ([iscsi("a", read_only=True)], [iscsi("a", read_only=True)], False),
        ([iscsi("a", read_only=True)], [iscsi("a", read_only=True), iscsi("a")], True),
        ([rbd("i", "m1", "m2")], [rbd("i", "m3")], False),
        ([rbd("i", "m1", read_only=True)], [rbd("i", "m1", read_only=True)], False),
        ([rbd("i", "m1", read_only=True)], [rbd("i", "m1")], True),
        ([rbd("i", "m1")], [rbd("j", "m1")], False),
        ([rbd("i", "m1", "m2")], [rbd("i", "m3"), rbd("i", "m2")], True),
        ([EBS], [EBS], True),
        ([GCE, PLAIN], [EBS, PLAIN, iscsi("d")], False),
        ([PLAIN, GCE], [PLAIN, GCE], True),
    ],
)
def test_the_ways_in_which_one_disk_is_mounted_decide(theirs: list[Any], mine: list[Any], answer: bool) -> None:
    assert refused(with_disks("other", *theirs), *mine) is answer


def test_thousands_of_disks_are_not_held_against_every_volume_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Any] = []
    meant = volume_restrictions._meant

    def counted(volume: Any) -> Any:
        looked_at.append(volume)
        return meant(volume)

    monkeypatch.setattr(volume_restrictions, "_meant", counted)
    others = with_disks("other", *(iscsi(f"o{number}") for number in range(1000)), iscsi("same", read_only=True))
    mine = [iscsi(f"m{number}") for number in range(1000)] + [iscsi("same", read_only=True)] * 1000
    assert not refused(others, *mine)
    assert len(looked_at) <= len(mine) + 1001, "each once"


def test_thousands_of_ways_to_one_image_are_looked_at_once_each() -> None:
    """Each was held against each: no two have a monitor in common."""
    others = with_disks("other", *(rbd("i", f"o{number}") for number in range(5000)))
    assert not refused(others, *(rbd("i", f"m{number}") for number in range(5000)))
    assert refused(others, *(rbd("i", f"m{number}") for number in range(5000)), rbd("i", "o4999"))
