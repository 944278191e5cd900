"""A pod made beside what was known of it is what it would be alone."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Container, ContainerStatus, Pod, PodSpec, PodStatus
from policyengine.cluster.pod_shape import shape_again, shape_of
from tests.builders import make_pod

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


@settings(max_examples=300)
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


def test_a_huge_pod_whose_kubelet_writes_its_status_is_seen_again_at_once() -> None:
    """The lease is renewed on the same event loop."""
    names = [f"c{number}" for number in range(3000)]
    spec = PodSpec(containers=tuple(Container(name=name) for name in names))
    known = shape_of(spec)
    status = PodStatus(container_statuses=tuple(ContainerStatus(name=name) for name in names))
    began = time.process_time()
    assert all(shape_again(known, spec, status) is known for _ in range(5))
    assert time.process_time() - began < 0.5
