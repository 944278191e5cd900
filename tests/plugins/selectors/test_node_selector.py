"""Compiled node selectors, asked about more than one cluster."""

from __future__ import annotations

from policyengine.diagnosis.dump import read_objects
from policyengine.diagnosis.forecast import forecast
from policyengine.plugins.registry import default_profile
from tests.builders import make_node, make_pod


def test_one_profile_judges_clusters_whose_labels_came_in_another_order() -> None:
    profile = default_profile()

    def node_of(*disks: str) -> str:
        nodes = [make_node(f"n{number}").label("disk", disk) for number, disk in enumerate(disks)]
        listed = [one.allocatable(cpu="1", pods="10").json() for one in nodes]
        objects = read_objects({"nodes": listed, "pods": [make_pod("p").node_selector({"disk": "ssd"}).json()]})
        return forecast(objects, [profile], 1_767_600_000.0)["default/p"].node

    assert [node_of("ssd", "hdd"), node_of("hdd", "ssd"), node_of("hdd")] == ["n0", "n1", ""]
