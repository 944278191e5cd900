"""What is counted of pods, once each, and kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.server.rewards.book import Book, Mean, dump, group_of, load, reward, speed


def pod(uid: str = "1", node: str = "a", phase: str = "Running", restarts: int = 0, ran: int | None = None) -> Pod:
    container: dict[str, Any] = {"restartCount": restarts}
    status: dict[str, Any] = {"phase": phase, "containerStatuses": [container]}
    if ran is not None:
        status["startTime"] = "2026-01-01T00:00:00Z"
        container["state"] = {"terminated": {"exitCode": 0, "finishedAt": f"2026-01-01T00:{ran:02d}:00Z"}}
    metadata = {"name": uid, "uid": uid, "labels": {"app": "web"}}
    return decode(Pod, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def rewards(*pods: Pod, now: float = 0.0) -> dict[str, float]:
    book = Book(3600.0)
    for one in pods:
        book.observe(one, now)
    return {node: round(groups["web"], 3) for node, groups in book.rewards(now).items()}


def test_a_group_is_podtype_else_app_else_name() -> None:
    labels = {"name": "n", "app": "a", "podtype": "p"}
    assert group_of(labels) == "p"
    assert group_of({"name": "n", "app": "a"}) == "a"
    assert group_of({"name": "n", "app": ""}) == "n"
    assert group_of({"tier": "x"}) == ""


def test_of_pods_without_a_group_or_a_node_nothing_is_learnt() -> None:
    assert rewards(pod(node="", phase="Failed")) == {}
    nobody = decode(Pod, {"metadata": {"uid": "1"}, "spec": {"nodeName": "a"}, "status": {"phase": "Failed"}})
    assert Book(1.0).pods == {} and rewards(nobody) == {}


def test_a_failure_lowers_and_a_success_raises_the_reward_of_its_node() -> None:
    assert rewards(pod("1", "a", "Failed"), pod("2", "b", "Succeeded")) == {"a": 0.25, "b": 0.75}


def test_seeing_a_pod_again_counts_nothing_twice() -> None:
    assert rewards(*[pod("1", "a", "Failed")] * 5) == {"a": 0.25}
    assert rewards(*[pod("1", "a", restarts=1)] * 5) == {"a": 0.25}


def test_each_restart_counts() -> None:
    assert rewards(pod("1", restarts=1), pod("1", restarts=3)) == {"a": 0.125}


def test_a_running_pod_is_no_result_yet() -> None:
    assert rewards(pod("1")) == {}


def test_runs_are_measured_by_the_mean_of_the_group() -> None:
    # Two minutes beside a mean of (2 + 8) / 2: worth 1. Eight minutes: worth 5 / 8.
    assert rewards(pod("0", "b", "Succeeded", ran=2), pod("1", "a", "Succeeded", ran=8)) == {
        "b": 0.75,
        "a": round((5 / 8 + 0.5) / 2, 3),
    }


def test_a_pod_that_does_not_start_in_time_counts_once_and_one_that_does_not_at_all() -> None:
    book = Book(3600.0)
    book.observe(pod("1", "a", "Pending"), 0.0)
    book.observe(pod("2", "b", "Pending"), 0.0)
    book.observe(pod("2", "b", "Running"), 50.0)
    for now in (59.0, 60.0, 61.0):
        book.wait(now, 60.0)
    found = book.rewards(61.0)
    assert set(found) == {"a"} and round(found["a"]["web"], 2) == 0.25


def test_what_is_long_past_is_forgotten() -> None:
    book = Book(60.0)
    book.observe(pod(phase="Failed"), 0.0)
    assert book.rewards(60.0) != {}
    assert book.rewards(600.0) == {} and book.evidence == {}


def test_the_state_is_kept_whole() -> None:
    book = Book(3600.0)
    book.observe(pod("1", "a", "Failed", restarts=2), 0.0)
    book.observe(pod("2", "b", "Succeeded", ran=5), 10.0)
    again = load(dump(book), 3600.0)
    assert again == book
    again.observe(pod("1", "a", "Failed", restarts=2), 20.0)
    assert again.rewards(20.0) == book.rewards(20.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"evidence": [[1]], "runtimes": [], "pods": {}}', '{"evidence": 1}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no state of rewards"):
        load(text, 1.0)


values = st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1)), max_size=20)


def test_a_result_weighs_half_after_each_half_life() -> None:
    one = Mean(0.0).with_(1.0, 0.0, 100.0)
    assert [one.on(now, 100.0).weight for now in (0.0, 100.0, 200.0)] == [1.0, 0.5, 0.25]
    assert one.on(200.0, 100.0).value == 1.0


def test_little_evidence_moves_the_reward_little_and_much_moves_it_far() -> None:
    assert reward(Mean(0.0), 0.5) == 0.5
    bad = Mean(0.0)
    seen = []
    for _ in range(4):
        bad = bad.with_(0.0, 0.0, 100.0)
        seen.append(round(reward(bad, 0.5), 3))
    assert seen == [0.25, 0.167, 0.125, 0.1]
    assert round(reward(bad.on(1000.0, 100.0), 0.5), 3) == 0.498


def test_a_slow_run_is_worth_less_and_a_fast_one_no_more_than_1() -> None:
    assert (speed(10.0, 20.0), speed(20.0, 20.0), speed(40.0, 20.0)) == (1.0, 1.0, 0.5)


def test_a_clock_that_went_back_changes_nothing() -> None:
    one = Mean(100.0, 2.0, 1.0)
    assert one.on(50.0, 10.0) == one


@given(values, st.floats(0, 1))
def test_a_reward_is_from_0_to_1(results: list[tuple[float, float]], unknown: float) -> None:
    mean = Mean(0.0)
    for at, value in results:
        mean = mean.with_(value, at, 600.0)
    assert 0.0 <= reward(mean, unknown) <= 1.0 + 1e-12
