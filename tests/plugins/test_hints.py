"""Which changes wake a refused pod: what could not help wakes nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from policyengine.framework.events import ActionType, QueueingHint, Resource
from policyengine.plugins.registry import IN_TREE, build
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def hint(plugin: str, resource: Resource, action: ActionType) -> Callable[[Any, Any, Any], QueueingHint]:
    """The hint of the registration for the event; one that always queues where it has none."""
    for registered in build(plugin).events_to_register():
        event = registered.event
        if event.resource is resource and event.action & action:
            return registered.hint or (lambda pod, old, new: QUEUE)
    raise AssertionError(f"{plugin} does not register for {action} of {resource}")


def on_node(
    plugin: str, action: ActionType, pod: PodBuilder, old: NodeBuilder | None, new: NodeBuilder | None
) -> QueueingHint:
    objects = [node.build() if node is not None else None for node in (old, new)]
    return hint(plugin, Resource.NODE, action)(pod.info(), *objects)


def on_pod(
    plugin: str, action: ActionType, pod: PodBuilder, old: PodBuilder | None, new: PodBuilder | None
) -> QueueingHint:
    infos = [one.info() if one is not None else None for one in (old, new)]
    return hint(plugin, Resource.POD, action)(pod.info(), *infos)


def test_every_plugin_that_filters_registers_something() -> None:
    for entry in IN_TREE.values():
        if entry.filters:
            assert build(entry.name).events_to_register(), entry.name


def test_a_label_change_does_not_wake_a_pod_that_wants_cpu() -> None:
    actions = [one.event.action for one in build("NodeResourcesFit").events_to_register()]
    assert not any(action & ActionType.UPDATE_NODE_LABEL for action in actions)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {"cpu": "4"}, QUEUE),
        (None, {"cpu": "1"}, SKIP),
        ({"cpu": "1"}, {"cpu": "4"}, QUEUE),
        ({"cpu": "4"}, {"cpu": "4", "memory": "9Gi"}, SKIP),
        ({"cpu": "4"}, {"cpu": "1"}, SKIP),
    ],
)
def test_fit_asks_whether_the_node_now_has_more_of_what_is_wanted(
    old: dict[str, str | int] | None, new: dict[str, str | int], expected: QueueingHint
) -> None:
    before = None if old is None else make_node().allocatable(old, pods=5)
    after = make_node().allocatable(new, pods=5)
    action = ActionType.UPDATE_NODE_ALLOCATABLE
    assert on_node("NodeResourcesFit", action, make_pod().req(cpu="2"), before, after) is expected


def test_fit_asks_whether_a_pod_freed_what_is_wanted() -> None:
    wants = make_pod("p").req(cpu="1")
    runs = make_pod("q").req(cpu="1").node("a")
    assert on_pod("NodeResourcesFit", ActionType.DELETE, wants, runs, None) is QUEUE
    assert on_pod("NodeResourcesFit", ActionType.DELETE, wants, make_pod("q").req(cpu="1"), None) is SKIP
    less_memory = (make_pod("q").req(memory="2Gi").node("a"), make_pod("q").req(memory="1Gi").node("a"))
    assert on_pod("NodeResourcesFit", ActionType.UPDATE_POD_SCALE_DOWN, wants, *less_memory) is SKIP
    less_cpu = (make_pod("q").req(cpu="2").node("a"), make_pod("q").req(cpu="1").node("a"))
    assert on_pod("NodeResourcesFit", ActionType.UPDATE_POD_SCALE_DOWN, wants, *less_cpu) is QUEUE


def test_uncordoning_wakes_and_cordoning_does_not() -> None:
    pod, action = make_pod(), ActionType.UPDATE_NODE_TAINT
    cordoned, free = make_node().unschedulable(), make_node()
    assert on_node("NodeUnschedulable", action, pod, cordoned, free) is QUEUE
    assert on_node("NodeUnschedulable", action, pod, free, cordoned) is SKIP
    assert on_node("NodeUnschedulable", action, pod, None, cordoned) is SKIP
    assert on_node("NodeUnschedulable", action, pod, None, free) is QUEUE


def test_a_taint_that_goes_wakes_only_who_could_not_tolerate_it() -> None:
    action = ActionType.UPDATE_NODE_TAINT
    tainted, clean = make_node().taint("gpu"), make_node()
    assert on_node("TaintToleration", action, make_pod(), tainted, clean) is QUEUE
    assert on_node("TaintToleration", action, make_pod(), tainted, make_node().taint("other")) is SKIP
    tolerant = make_pod().toleration("gpu", operator="Exists")
    assert on_node("TaintToleration", action, tolerant, tainted, clean) is SKIP


def test_only_a_toleration_of_its_own_wakes_a_pod() -> None:
    action = ActionType.UPDATE_POD_TOLERATION
    own = make_pod("p").toleration("gpu", operator="Exists")
    assert on_pod("TaintToleration", action, make_pod("p"), make_pod("p"), own) is QUEUE
    other = make_pod("q").toleration("gpu", operator="Exists")
    assert on_pod("TaintToleration", action, make_pod("p"), make_pod("q"), other) is SKIP


def test_labels_wake_a_pod_only_when_they_come_to_match() -> None:
    pod, action = make_pod().node_selector({"disk": "ssd"}), ActionType.UPDATE_NODE_LABEL
    plain, ssd = make_node(), make_node().label("disk", "ssd")
    assert on_node("NodeAffinity", action, pod, plain, ssd) is QUEUE
    assert on_node("NodeAffinity", action, pod, ssd, make_node().label("disk", "ssd").label("x", "y")) is SKIP
    assert on_node("NodeAffinity", action, pod, plain, make_node().label("disk", "hdd")) is SKIP
    assert on_node("NodeAffinity", action, pod, None, ssd) is QUEUE


def test_a_port_wakes_only_who_wants_it() -> None:
    wants = make_pod("p").host_port(80)
    assert on_pod("NodePorts", ActionType.DELETE, wants, make_pod("q").host_port(80).node("a"), None) is QUEUE
    assert on_pod("NodePorts", ActionType.DELETE, wants, make_pod("q").host_port(81).node("a"), None) is SKIP
    assert on_pod("NodePorts", ActionType.DELETE, wants, make_pod("q").host_port(80), None) is SKIP
    udp = make_pod("q").host_port(80, protocol="UDP").node("a")
    assert on_pod("NodePorts", ActionType.DELETE, wants, udp, None) is SKIP


def test_gates_wake_only_their_own_pod() -> None:
    action = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    gated = make_pod("p").gate("wait")
    assert on_pod("SchedulingGates", action, gated, gated, make_pod("p")) is QUEUE
    assert on_pod("SchedulingGates", action, gated, make_pod("q").gate("wait"), make_pod("q")) is SKIP


def spread_pod() -> PodBuilder:
    return make_pod("p").label("app", "web").spread("zone", {"app": "web"})


def test_spreading_is_woken_by_pods_that_count_and_nodes_that_move() -> None:
    pod = spread_pod()
    counts, other = make_pod("q").label("app", "web").node("a"), make_pod("q").label("app", "db").node("a")
    assert on_pod("PodTopologySpread", ActionType.DELETE, pod, counts, None) is QUEUE
    assert on_pod("PodTopologySpread", ActionType.DELETE, pod, other, None) is SKIP
    assert on_pod("PodTopologySpread", ActionType.ADD, pod, None, make_pod("q").label("app", "web")) is SKIP
    assert on_pod("PodTopologySpread", ActionType.UPDATE_POD_LABEL, pod, other, counts) is QUEUE
    action = ActionType.UPDATE_NODE_LABEL
    a, b = make_node().label("zone", "a"), make_node().label("zone", "b")
    assert on_node("PodTopologySpread", action, pod, a, b) is QUEUE
    assert on_node("PodTopologySpread", action, pod, a, make_node().label("zone", "a").label("x", "y")) is SKIP
    assert on_node("PodTopologySpread", action, pod, None, make_node()) is SKIP


def test_affinity_is_woken_by_whom_it_is_about() -> None:
    near = make_pod("p").pod_affinity("zone", {"app": "db"})
    away = make_pod("p").pod_anti_affinity("zone", {"app": "db"})
    db, web = make_pod("q").label("app", "db").node("a"), make_pod("q").label("app", "web").node("a")
    assert on_pod("InterPodAffinity", ActionType.ADD, near, None, db) is QUEUE
    assert on_pod("InterPodAffinity", ActionType.ADD, near, None, web) is SKIP
    assert on_pod("InterPodAffinity", ActionType.ADD, away, None, db) is SKIP
    assert on_pod("InterPodAffinity", ActionType.DELETE, away, db, None) is QUEUE
    hostile = make_pod("q").node("a").pod_anti_affinity("zone", {"app": "web"})
    assert on_pod("InterPodAffinity", ActionType.DELETE, make_pod("p").label("app", "web"), hostile, None) is QUEUE
    assert on_pod("InterPodAffinity", ActionType.DELETE, make_pod("p").label("app", "db"), hostile, None) is SKIP
    node = make_node().label("zone", "a")
    assert on_node("InterPodAffinity", ActionType.ADD, near, None, node) is QUEUE
    assert on_node("InterPodAffinity", ActionType.ADD, near, None, make_node()) is SKIP
    assert on_node("InterPodAffinity", ActionType.ADD, away, None, make_node()) is QUEUE
    assert on_node("InterPodAffinity", ActionType.UPDATE_NODE_LABEL, away, node, make_node()) is QUEUE


def test_claims_wake_only_their_pods() -> None:
    from policyengine.cluster.objects import decode
    from policyengine.cluster.storage_objects import PersistentVolumeClaim

    pod = make_pod("p").pvc("data").info()
    own, other = (
        decode(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "default"}}) for name in ("data", "logs")
    )
    for plugin in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"):
        asked = hint(plugin, Resource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        assert asked(pod, None, own) is QUEUE
        assert asked(pod, None, other) is SKIP
