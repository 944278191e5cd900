import pytest

from policyengine.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    MINUTE_PASSED,
    WILDCARD,
    ActionType,
    ClusterEvent,
    Resource,
)
from policyengine.cluster.update_events import node_events, pod_events
from tests.builders import make_node, make_pod


def node():
    return make_node("n").capacity(cpu=1).label("a", "b").taint("t")


NODE_CHANGES = {
    "nothing": (node(), []),
    "allocatable": (node().allocatable(cpu=2), ["NodeUpdateNodeAllocatable"]),
    "capacity": (node().set("status.capacity", {"cpu": "2"}), ["NodeUpdate"]),
    "image": (node().image("i", 1), ["NodeUpdate"]),
    "label": (node().label("a", "c"), ["NodeUpdateNodeLabel"]),
    "taint": (node().taint("u"), ["NodeUpdateNodeTaint"]),
    "annotation": (node().annotation("a", "b"), ["NodeUpdateNodeAnnotation"]),
    "condition": (node().ready(), ["NodeUpdateNodeCondition"]),
    "cordon": (node().unschedulable(), ["NodeUpdate"]),
    "feature": (node().set("status.declaredFeatures", ["F"]), ["NodeUpdateNodeDeclaredFeature"]),
    "both": (node().label("a", "c").allocatable(cpu=2), ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]),
}


@pytest.mark.parametrize(("new", "expected"), NODE_CHANGES.values(), ids=NODE_CHANGES)
def test_what_an_update_of_a_node_is_called(new, expected):
    assert [event.label for event in node_events(node().build(), new.build())] == expected


def test_uncordoning_counts_as_a_change_of_taints():
    events = node_events(node().unschedulable().build(), node().build())
    assert [event.label for event in events] == ["NodeUpdateNodeTaint"]


def test_a_condition_s_reason_alone_is_another_update():
    old, new = make_node().condition("Ready", "True", "x"), make_node().condition("Ready", "True", "y")
    assert [event.label for event in node_events(old.build(), new.build())] == ["NodeUpdate"]


def pod():
    return make_pod("p").req(cpu="2", memory="1Gi").gate("g").gate("h")


POD_CHANGES = {
    "nothing": (pod(), ["Update"]),
    "label": (pod().label("a", "b"), ["UpdatePodLabel"]),
    "annotation": (pod().annotation("a", "b"), ["UpdatePodAnnotation"]),
    "less": (pod().req(cpu="1"), ["UpdatePodScaleDown"]),
    "more": (pod().req(cpu="3"), ["Update"]),
    "toleration": (pod().toleration("k", "Exists"), ["UpdatePodToleration"]),
    "one gate": (pod().set("spec.schedulingGates", [{"name": "g"}]), ["Update"]),
    "no gate": (pod().set("spec.schedulingGates", []), ["UpdatePodSchedulingGatesEliminated"]),
    "priority": (pod().priority(5), ["Update"]),
    "claim": (
        pod().set("status.resourceClaimStatuses", [{"name": "c", "resourceClaimName": "x"}]),
        ["UpdatePodGeneratedResourceClaim"],
    ),
}


@pytest.mark.parametrize("node_name", ["", "n"])
@pytest.mark.parametrize(("new", "expected"), POD_CHANGES.values(), ids=POD_CHANGES)
def test_what_an_update_of_a_pod_is_called(new, expected, node_name):
    prefix = "AssignedPod" if node_name else "UnschedulablePod"
    events = pod_events(pod().node(node_name).info(), new.set("spec.nodeName", node_name).info())
    assert [event.label for event in events] == [prefix + label for label in expected]


def test_binding_coming_and_going():
    pending, bound, elsewhere = make_pod().info(), make_pod().node("a").info(), make_pod().node("b").info()

    def labels(old, new):
        return [event.label for event in pod_events(old, new)]

    assert labels(None, pending) == ["UnschedulablePodAdd"]
    assert labels(None, bound) == labels(pending, bound) == ["AssignedPodAdd"]
    assert labels(pending, None) == ["UnschedulablePodDelete"]
    assert labels(bound, None) == ["AssignedPodDelete"]
    assert labels(bound, elsewhere) == ["AssignedPodDelete", "AssignedPodAdd"]
    assert labels(bound, pending) == ["AssignedPodDelete", "UnschedulablePodAdd"]
    assert labels(None, None) == []


def test_an_event_knows_what_it_is_and_equals_its_like():
    assert (ASSIGNED_POD_ADD.is_add, ASSIGNED_POD_ADD.is_delete) == (True, False)
    assert (ASSIGNED_POD_DELETE.is_add, ASSIGNED_POD_DELETE.is_delete) == (False, True)
    assert (MINUTE_PASSED.is_add, MINUTE_PASSED.is_delete) == (False, False)
    assert (WILDCARD.is_add, WILDCARD.is_delete) == (True, True)
    again = ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD, "AssignedPodAdd")
    assert {again: 1}[ASSIGNED_POD_ADD] == 1
    assert again == ASSIGNED_POD_ADD != ClusterEvent(Resource.ASSIGNED_POD, ActionType.ADD, "other")
