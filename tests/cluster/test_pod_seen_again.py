"""A pod made beside what was known of it is what it would be alone, and a confirmed assumption what a pod taken out and
put in again would be."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.consistency import dump_view, validate_view
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import ClusterView
from tests.builders import make_node, make_pod

TIMES = st.sampled_from(["1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", "never"])
looks = st.fixed_dictionaries(
    {},
    optional={
        "req": st.sampled_from(["1", "1500m", "bad"]),
        "label": st.sampled_from(["red", "blue"]),
        "annotation": st.sampled_from(["x", "y"]),
        "owner": st.sampled_from(["web-1", "web-2"]),
        "token": st.sampled_from(["abcde", "fghij"]),
        "data": st.just("claim"),
        "gate": st.just("wait"),
        "toleration": st.sampled_from(["k", "l"]),
        "priority": st.integers(0, 2),
        "node": st.sampled_from(["n", "m"]),
        "nominated": st.sampled_from(["n", "m"]),
        "created": TIMES,
        "started": TIMES,
        "deleting": TIMES,
        "phase": st.sampled_from(["Pending", "Running", "Failed"]),
        "scheduled": TIMES,
        "resized": st.sampled_from(["1", "2"]),
        "restarts": st.integers(0, 2),
    },
)


def pod_of(look: dict[str, Any], version: int) -> Pod:
    pod = make_pod("p").uid("u").version(version).image("app")
    for name in ("annotation", "label"):
        if name in look:
            getattr(pod, name)("color", look[name])
    for name in ("gate", "toleration", "priority", "node", "nominated", "created", "started", "deleting", "phase"):
        if name in look:
            getattr(pod, name)(look[name])
    if "req" in look:
        pod.req(cpu=look["req"])
    if "owner" in look:
        pod.owner("ReplicaSet", look["owner"])
    if "token" in look:
        pod.volume(f"kube-api-access-{look['token']}", projected={})
    if "data" in look:
        pod.pvc(look["data"])
    if "scheduled" in look:
        pod.condition("PodScheduled", "True", time=look["scheduled"])
    if "resized" in look:
        pod.container_status(requests={"cpu": look["resized"]})
    if "restarts" in look:
        pod.container_status(restarts=look["restarts"])
    return pod.build()


@settings(max_examples=300, deadline=None)
@given(looks, looks)
def test_a_pod_seen_again_is_what_it_would_be_alone(before, now):
    known = PodInfo(pod_of(before, 1))
    again, alone = PodInfo(pod_of(now, 2), known), PodInfo(pod_of(now, 2))
    for name in PodInfo.__slots__:
        assert getattr(again, name) == getattr(alone, name), name
    for name in ("shape", "labels", "annotations", "owner_references", "namespace"):
        assert getattr(again, name) is getattr(alone, name), name


def test_what_did_not_change_is_shared_with_what_was_known():
    labels = {f"label-{i}": "too many to be looked up" for i in range(20)}
    known = make_pod("p").labels(labels).info()
    assert PodInfo(make_pod("p").labels(labels).node("n").build(), known).labels is known.labels


class ByColor:
    def groups(self, pod: PodInfo) -> tuple[str, ...]:
        return (pod.labels.get("color", ""),)


def view_with(pods: list[dict[str, Any]]) -> ClusterView:
    """Pods `p0`, `p1`, … pending beside one that runs; somebody reads usage and the pod table."""
    view = ClusterView()
    for name in ("n", "m"):
        view.add_or_update_node(make_node(name).capacity(cpu=8, memory="8Gi", pods=20).build())
    view.add_or_update_pod(make_pod("standing").req(cpu="1").node("n").build())
    for i, look in enumerate(pods):
        view.add_or_update_pod(pending(i, look, 1))
    view.nodes.pod_table.current()
    view.nodes.pod_table.numbers("restarts", lambda pod: pod.restarts)
    return view


def pending(i: int, look: dict[str, Any], version: int, node: str = "") -> Pod:
    pod = make_pod(f"p{i}").req(cpu=look["cpu"]).label("color", look["color"]).version(version).node(node)
    if look["port"]:
        pod.host_port(80 + i)
    return pod.build()


def seen(view: ClusterView, counts: Any) -> dict[str, Any]:
    """All that a reader of columns, usage, pods or the pod table can see."""
    table, pods = view.nodes, view.nodes.pod_table.current()
    rows = pods.rows.tolist()
    return {
        "dump": dump_view(view),
        "columns": [table.requested(name).tolist() for name in table.resources]
        + [table.pod_count.tolist(), table.nonzero_requested_cpu.tolist(), table.nonzero_requested_memory.tolist()],
        "ports": {port: dict(table.ports.users("0.0.0.0", "TCP", port)) for port in range(80, 84)},
        "counts": counts.dump(),
        "pending": view.pending_count,
        "table": {info.uid: rows[place] for place, info in enumerate(pods.infos)},
        "states": {uid: info.state for uid, info in view.pods.items()},
    }


assumed = st.lists(
    st.fixed_dictionaries(
        {
            "cpu": st.sampled_from(["1", "500m"]),
            "color": st.sampled_from(["red", "blue"]),
            "port": st.booleans(),
            "node": st.sampled_from(["n", "m"]),
        }
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=100, deadline=None)
@given(assumed, st.data())
def test_a_confirmed_assumption_leaves_what_taking_it_out_and_putting_it_in_again_would(pods, data):
    confirmed, anew = view_with(pods), view_with(pods)
    usage = [view.usage_counts(ByColor()) for view in (confirmed, anew)]
    for i, look in enumerate(pods):
        for view in (confirmed, anew):
            view.assume(f"p{i}", look["node"])
    for i in data.draw(st.permutations(range(len(pods)))):
        node, row = pods[i]["node"], confirmed.nodes.row_of[pods[i]["node"]]
        bound = pending(i, pods[i], 2, node)
        position = confirmed.nodes.pod_journal.position
        change = confirmed.add_or_update_pod(bound)
        assert change.new is confirmed.pods[f"p{i}"]
        assert [event.label for event in change.events] == ["AssignedPodAdd"]
        assert change.new.state is PodState.BOUND
        named = confirmed.nodes.pod_journal.since(position)
        assert named is not None
        assert np.array_equal(named, [row]), "its row is named once"
        anew.forget(f"p{i}")
        anew.remove_pod(f"p{i}")
        anew.add_or_update_pod(bound)
        assert seen(confirmed, usage[0]) == seen(anew, usage[1])
        validate_view(confirmed)
