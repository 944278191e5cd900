"""NodeVolumeLimits: a node is looked at closely only where its limit could be reached."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.objects import decode
from policyengine.cluster.storage_objects import CSINode, PersistentVolume, PersistentVolumeClaim
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from policyengine.plugins.volumes import node_volume_limits
from tests.builders import make_node, make_pod

NODES, LIMIT = 5, 3
FULL = "node(s) exceed max volume count"


def cluster() -> ClusterView:
    """Each node takes 3 volumes. There are claims c0, c1, …, each with a volume."""
    view = ClusterView()
    for number in range(NODES):
        view.add_or_update_node(make_node(f"n{number}").build())
        drivers = [{"name": "csi", "allocatable": {"count": LIMIT}}]
        view.set_object("CSINode", decode(CSINode, {"metadata": {"name": f"n{number}"}, "spec": {"drivers": drivers}}))
    for number in range(20):
        spec: dict[str, Any] = {"csi": {"driver": "csi", "volumeHandle": f"h{number}"}}
        view.set_object(
            "PersistentVolume", decode(PersistentVolume, {"metadata": {"name": f"v{number}"}, "spec": spec})
        )
        meta = {"name": f"c{number}", "namespace": "default"}
        view.set_object(
            "PersistentVolumeClaim",
            decode(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": f"v{number}"}}),
        )
    return view


def refused(view: ClusterView, *claims: int) -> list[str]:
    """The nodes that are refused to a pod with these claims."""
    pod = make_pod("p")
    for one in claims:
        pod.pvc(f"c{one}")
    evaluator = Evaluator(in_tree_profile("p", "s", "", {"NodeVolumeLimits": (build("NodeVolumeLimits"), None)}))
    snapshot = view.snapshot()
    diagnosis = evaluator.filter(pod.info(), snapshot)
    answers = {name: diagnosis.refusal(row) for name, row in snapshot.nodes.row_of.items()}
    assert all(status.is_success or status.message == FULL for status in answers.values())
    return sorted(name for name, status in answers.items() if not status.is_success)


def test_where_all_that_stand_there_are_too_few_no_claim_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    view, asked = cluster(), []
    view.add_or_update_pod(make_pod("a").pvc("c0").pvc("c1").node("n0").build())
    view.add_or_update_pod(make_pod("b").pvc("c2").pvc("c3").node("n1").build())
    volumes = node_volume_limits._volumes

    def noted(pod: Any, snapshot: Any) -> Any:
        asked.append(pod.name)
        return volumes(pod, snapshot)

    monkeypatch.setattr(node_volume_limits, "_volumes", noted)
    assert refused(view, 5) == []
    assert asked == ["p"]
    assert refused(view, 5, 6) == ["n0", "n1"]
    assert asked == ["p", "p", "a", "b"]
