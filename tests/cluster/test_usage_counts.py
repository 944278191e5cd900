"""Sums by group: exact at every moment, in hypothetical views too, and of pods on nodes nobody knows."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.consistency import validate_view
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import ClusterView
from tests.builders import make_node, make_pod


class ByTeam:
    """Counts a pod in its namespace and, if it has one, in its team."""

    def __init__(self) -> None:
        self.asked = 0

    def groups(self, pod: PodInfo) -> tuple[str, ...]:
        self.asked += 1
        team = pod.labels.get("team")
        return (pod.namespace, team) if team else (pod.namespace,)


def view_with(*nodes: str) -> ClusterView:
    view = ClusterView()
    for name in nodes:
        view.add_or_update_node(make_node(name).capacity(cpu="8", memory="8Gi", pods="110").build())
    return view


def test_only_pods_with_a_node_count_and_pods_count_themselves() -> None:
    view, grouping = view_with("n"), ByTeam()
    counts = view.usage_counts(grouping)
    view.add_or_update_pod(make_pod("p").req(cpu="2").build())
    assert counts.used("default") == {}
    view.assume("p", "n")
    assert counts.used("default") == {"cpu": 2000, "pods": 1}
    view.forget("p")
    assert counts.used("default") == {}


def test_a_tally_asked_for_late_counts_what_is_there() -> None:
    view = view_with("n")
    view.add_or_update_pod(make_pod("p").req(cpu="2").node("n").label("team", "a").build())
    view.add_or_update_pod(make_pod("q").req(cpu="1").node("unknown").label("team", "a").build())
    grouping = ByTeam()
    assert view.usage_counts(grouping).used("a") == {"cpu": 3000, "pods": 2}
    assert view.usage_counts(grouping) is view.usage_counts(grouping)


def test_a_hypothetical_view_counts_as_it_would_and_asks_nobody_again() -> None:
    view, grouping = view_with("n"), ByTeam()
    view.add_or_update_pod(make_pod("p").req(cpu="2").node("n").build())
    view.add_or_update_pod(make_pod("q").req(cpu="1").build())
    counts = view.usage_counts(grouping)
    asked = grouping.asked
    with view.hypothetically(remove=["p"], add=[("q", "n")]):
        assert counts.used("default") == {"cpu": 1000, "pods": 1}
        validate_view(view)
    assert counts.used("default") == {"cpu": 2000, "pods": 1}
    with view.hypothetically(remove=["p"], add=[("q", "n")]):
        pass
    assert grouping.asked == asked + 2  # once about `q`, and once by the recount of `validate`


def test_a_tally_goes_with_its_grouping() -> None:
    view = view_with("n")
    view.usage_counts(ByTeam())
    view.add_or_update_pod(make_pod("p").node("n").build())
    validate_view(view)


NAMES, NODES = st.integers(0, 4), st.sampled_from(["n1", "n2", "unknown", ""])
steps = st.one_of(
    st.tuples(st.just("pod"), NAMES, NODES, st.integers(0, 3), st.sampled_from(["", "a", "b"]), st.booleans()),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("assume"), NAMES),
    st.tuples(st.just("forget"), NAMES),
    st.tuples(st.just("node"), st.booleans()),
    st.tuples(st.just("suppose"), NAMES, NAMES),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(steps, max_size=40))
def test_sums_equal_a_recount_after_every_step(history: list[tuple[Any, ...]]) -> None:
    view, grouping = view_with("n1", "n2"), ByTeam()
    view.usage_counts(grouping)
    for version, (step, *values) in enumerate(history, start=1):
        uid = f"p{values[0]}"
        known = view.pods.get(uid)
        if step == "pod":
            _, node, cpu, team, finished = values
            pod = make_pod(uid).req(cpu=str(cpu)).labels({"team": team} if team else {})
            view.add_or_update_pod(
                (pod.node(node) if node else pod).phase("Failed" if finished else "").version(version).build()
            )
        elif step == "remove":
            view.remove_pod(uid)
        elif step == "assume" and known is not None and known.state is PodState.PENDING and "n1" in view.nodes.row_of:
            view.assume(uid, "n1")
        elif step == "forget":
            view.forget(uid)
        elif step == "node" and values[0]:
            view.remove_node("n1")
        elif step == "node":
            view.add_or_update_node(make_node("n1").capacity(cpu="8", pods="110").version(version).build())
        elif step == "suppose":
            with view.hypothetically(remove=[uid, f"p{values[1]}"]):
                validate_view(view)
        validate_view(view)
