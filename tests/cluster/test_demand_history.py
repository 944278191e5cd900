"""What placed pods asked for: moments held against numbers worked out by hand, and which pods count."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.demand_history import MOST_GROUPS, MOST_RESOURCES, DemandHistory, History, Moments
from policyengine.cluster.view import ClusterView
from tests.builders import make_node, make_pod

MI = 1024 * 1024


def bound(name: str, cpu: str = "1", memory: str = "1Mi", app: str = "web") -> Any:
    return make_pod(name).req(cpu=cpu, memory=memory).label("app", app).node("a").build()


def view_of(*pods: Any) -> ClusterView:
    view = ClusterView()
    view.add_or_update_node(make_node("a").build())
    for pod in pods:
        view.add_or_update_pod(pod)
    return view


def history(view: ClusterView, label: str = "", smoothing: float = 0.0, of: str = "web") -> History:
    return view.demand.of({"app": of}, label, smoothing)


def test_mean_deviation_and_covariance_of_three_pods_are_those_worked_out_by_hand() -> None:
    found = history(view_of(bound("p", "1", "10Mi"), bound("q", "2", "20Mi"), bound("r", "3", "60Mi")))
    assert (found.count, found.mean.cpu, found.mean.memory) == (3, 2000, 30 * MI)
    # cpu 1000, 2000, 3000: variance (1000² + 0 + 1000²) / 3; memory 10, 20, 60: (20² + 10² + 30²) / 3 = 1400 / 3
    assert found.stddev.cpu == round(math.sqrt(2e6 / 3)) == 816
    assert found.stddev.memory == round(math.sqrt(1400 / 3) * MI)
    # (-1000·-20 + 0 + 1000·30) / 3
    assert found.moments["cpu,memory"] == pytest.approx(50000 / 3 * MI)
    assert found.moments["cpu"] == 2000.0


def test_a_hundred_pods_weigh_alike_and_each_later_one_a_hundredth() -> None:
    view = view_of(*(bound(f"p{n}", f"{n}m") for n in range(1, 101)))
    assert history(view, smoothing=0.01).moments["cpu"] == pytest.approx(50.5)
    view.add_or_update_pod(bound("late", "1050500u"))
    assert history(view, smoothing=0.01).moments["cpu"] == pytest.approx(0.99 * 50.5 + 0.01 * 1051)
    assert history(view, smoothing=0.01).count == 101


def test_a_pod_that_asks_for_nothing_counts_as_ten_millicores_and_sixteen_mebibytes() -> None:
    found = history(view_of(make_pod("p").node("a").build()))
    assert (found.mean.cpu, found.mean.memory) == (10, 16 * MI)


def test_what_is_first_asked_for_later_was_asked_for_by_no_pod_before() -> None:
    gpu = make_pod("g").req(**{"nvidia.com/gpu": "2"}).node("a").build()
    found = history(view_of(bound("p"), gpu))
    assert found.mean.scalars["nvidia.com/gpu"] == 1.0
    assert found.stddev.scalars["nvidia.com/gpu"] == 1.0


def test_a_pod_counts_when_it_is_bound_and_once_whatever_becomes_of_it() -> None:
    view = view_of()
    assert history(view).count == 0
    waiting = make_pod("p").req(cpu="1").build()
    view.add_or_update_pod(waiting)
    view.assume(waiting.metadata.uid, "a")
    assert history(view).count == 0
    view.forget(waiting.metadata.uid)
    view.add_or_update_pod(make_pod("p").req(cpu="1").node("a").version("7").build())
    view.add_or_update_pod(make_pod("p").req(cpu="1").node("a").version("8").build())
    view.remove_pod(waiting.metadata.uid)
    assert history(view).count == 1
    assert history(view).mean.cpu == 1000


def test_a_hypothetical_view_teaches_nothing() -> None:
    view = view_of(bound("p"))
    view.add_or_update_pod(make_pod("q").req(cpu="9").build())
    before = history(view)
    with view.hypothetically(remove=["p"], add=[("q", "a")]):
        assert history(view) is before
    assert history(view) is before


def test_pods_are_told_apart_by_the_value_of_the_label() -> None:
    view = view_of(bound("p", "1"), bound("q", "3", app="db"), make_pod("r").req(cpu="5").node("a").build())
    assert [history(view, "app", of=of).mean.cpu for of in ("web", "db")] == [1000, 3000]
    assert view.demand.of({}, "app", 0.0).mean.cpu == 5000  # those without the label
    assert history(view).count == 3


def test_of_a_label_with_ever_new_values_the_last_ones_are_kept() -> None:
    view = view_of(*(bound(f"p{n}", app=f"job-{n}") for n in range(MOST_GROUPS + 1)))
    assert [history(view, "app", of=f"job-{n}").count for n in (0, 1, MOST_GROUPS)] == [0, 1, 1]


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 2**40)), max_size=30), st.sampled_from([0.0, 0.01, 0.3]))
def test_moments_are_those_of_the_weighted_pods(asked: list[tuple[int, int]], smoothing: float) -> None:
    """The other way: each pod's weight written out, then sums."""
    moments, weights = Moments(), list[float]()
    for count, (cpu, memory) in enumerate(asked, 1):
        moments.add({"cpu": cpu, "memory": memory}, smoothing)
        part = max(1 / count, smoothing)
        weights = [*((1 - part) * weight for weight in weights), part]
    found = moments.shown().moments
    for place, name in enumerate(("cpu", "memory") if asked else ()):
        mean = math.fsum(weight * one[place] for weight, one in zip(weights, asked, strict=True))
        spread = math.fsum(weight * (one[place] - mean) ** 2 for weight, one in zip(weights, asked, strict=True))
        assert found[name] == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert found[f"{name},{name}"] == pytest.approx(spread, rel=1e-6, abs=1e-6 * mean**2 + 1e-9)


# --- across restarts -------------------------------------------------------------------------------------


def restarted(saved: Any, *pods: Any) -> ClusterView:
    view = ClusterView()
    view.demand.restore(saved)
    view.add_or_update_node(make_node("a").build())
    for pod in pods:
        view.add_or_update_pod(pod)
    return view


def test_after_a_restart_the_pods_that_are_gone_still_count_and_those_that_stand_count_once() -> None:
    pods = [bound("gone", "1"), bound("stands", "3")]
    view = view_of(*pods)
    history(view, smoothing=0.01)
    view.remove_pod("gone")
    again = restarted(view.demand.saved(), pods[1])
    assert (history(again, smoothing=0.01).count, history(again, smoothing=0.01).mean.cpu) == (2, 2000)


def test_a_pod_that_was_bound_while_nobody_looked_counts_after_the_restart() -> None:
    view = view_of(bound("p", "1"))
    history(view)
    again = restarted(view.demand.saved(), bound("p", "1"), bound("q", "3"))
    assert history(again).count == 2


def test_what_nobody_asks_for_any_more_is_handed_on_and_what_is_asked_for_anew_begins_with_the_pods_there_are() -> None:
    view = view_of(bound("p", "1"))
    history(view, "app")
    kept = restarted(view.demand.saved()).demand.saved()
    again = restarted(kept, bound("p", "1"), bound("q", "3"))
    assert (history(again, "app").count, history(again).count) == (2, 2)


def test_only_the_pods_of_the_last_minute_are_remembered_by_name() -> None:
    pods = [
        make_pod(f"p{n}").node("a").condition("PodScheduled", "True", time=f"2026-01-01T00:{n:02}:00Z").build()
        for n in range(10)
    ]
    view = view_of(*pods)
    history(view)
    saved = view.demand.saved()
    assert saved.recent == ("p9",)
    assert history(restarted(saved, *pods)).count == 10


def test_where_nothing_is_saved_the_names_of_earlier_pods_are_dropped_all_the_same() -> None:
    view = view_of()
    history(view)
    for n in range(5000):
        time = (
            f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z" if n < 1440 else f"2026-01-02T{n // 60 % 24:02}:{n % 60:02}:00Z"
        )
        view.add_or_update_pod(make_pod(f"p{n}").node("a").condition("PodScheduled", "True", time=time).build())
    assert len(view.demand._recent) <= 1002
    assert history(view).count == 5000


def test_a_history_without_pods_is_empty() -> None:
    found = DemandHistory({}).of({}, "", 0.01)
    assert (found.count, found.mean.cpu, found.mean.scalars, dict(found.moments)) == (0, 0, {}, {})


def test_of_resources_without_end_the_last_ones_are_kept_and_those_that_every_pod_has() -> None:
    moments = Moments()
    for number in range(10):
        names = [f"x/{number}-{place}" for place in range(2000 if number == 4 else 4)]
        moments.add({"cpu": 1000, "memory": 1, "storage": 0, **dict.fromkeys(names, 7)}, 0.0)
    found = moments.shown()
    assert found.count == 10
    assert (found.mean.cpu, found.stddev.cpu) == (1000, 0)
    assert len(found.mean.scalars) == MOST_RESOURCES - 3
    assert {f"x/9-{place}" for place in range(4)} <= found.mean.scalars.keys()
    assert len(found.moments) == MOST_RESOURCES * (MOST_RESOURCES + 1)
    assert found.mean.scalars["x/9-0"] == pytest.approx(0.7)
    assert Moments.restored(moments.saved("", 0.0, "")).shown().moments.keys() == found.moments.keys()


def test_the_resources_that_every_pod_has_come_before_those_that_it_names() -> None:
    view = view_of()
    history(view)
    named = {f"a/{place}": 1 for place in range(100)}
    view.add_or_update_pod(make_pod("p").req({"cpu": "2", "memory": "1Gi", **named}).node("a").build())
    found = history(view)
    assert (found.mean.cpu, found.mean.memory) == (2000, 2**30)
    assert len(found.mean.scalars) == MOST_RESOURCES - 3
