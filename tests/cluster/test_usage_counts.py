"""Sums by group: who counts, and when. That they are exact after any history, `test_view_histories` says."""

from __future__ import annotations

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from tests.builders import make_node, make_pod
from tests.cluster.consistency import validate_view


class ByTeam:
    """Counts a pod in its namespace and, if it has one, in its team."""

    def groups(self, pod: PodInfo) -> tuple[str, ...]:
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


def test_a_hypothetical_view_counts_as_it_would() -> None:
    view, grouping = view_with("n"), ByTeam()
    view.add_or_update_pod(make_pod("p").req(cpu="2").node("n").build())
    view.add_or_update_pod(make_pod("q").req(cpu="1").build())
    counts = view.usage_counts(grouping)
    with view.hypothetically(remove=["p"], add=[("q", "n")]):
        assert counts.used("default") == {"cpu": 1000, "pods": 1}
        validate_view(view)
    assert counts.used("default") == {"cpu": 2000, "pods": 1}


def test_a_tally_goes_with_its_grouping() -> None:
    view = view_with("n")
    view.usage_counts(ByTeam())
    view.add_or_update_pod(make_pod("p").node("n").build())
    validate_view(view)
