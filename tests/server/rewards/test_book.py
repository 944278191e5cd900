"""What is counted of pods, once each, and kept: rewards worked out by hand from new = 0.9 · old + 0.1 · result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.cluster.objects import ObjectMeta, decode
from policyengine.server.rewards.book import FAILED, Book, Learning, Reward, WatchedEvent, WatchedPod, dump, load

HOUR = 3600.0


def pod(
    uid: str = "1",
    node: str = "a",
    phase: str = "Running",
    restarts: int = 0,
    ran: int | None = None,
    lived: int | None = None,
    ready: bool = False,
    **labels: str,
) -> WatchedPod:
    """`ran`: minutes to its end; `lived`: minutes from start to end of the container before its last restart."""
    container: dict[str, Any] = {"restartCount": restarts, "ready": ready}
    status: dict[str, Any] = {"phase": phase, "containerStatuses": [container]}
    if ran is not None:
        status["startTime"] = "2026-01-01T00:00:00Z"
        container["state"] = {"terminated": {"exitCode": 0, "finishedAt": f"2026-01-01T00:{ran:02d}:00Z"}}
    if lived is not None:
        run = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": f"2026-01-01T00:{lived:02d}:00Z"}
        container["lastState"] = {"terminated": run}
    metadata = {"name": uid, "uid": uid, "namespace": "default", "labels": labels or {"app": "web"}}
    return decode(WatchedPod, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def rewards(*pods: WatchedPod, **learning: Any) -> dict[str, float]:
    book = Book(Learning(**learning))
    for one in pods:
        book.observe(one, 0.0)
    return {node: round(reward.value, 6) for (_, node), reward in book.pairs.items()}


def test_a_group_is_podtype_else_app_else_name_in_its_namespace() -> None:
    def group(shares_groups: bool = False, **labels: str) -> str:
        return Book(Learning(shares_groups=shares_groups)).group_of(ObjectMeta(namespace="team", labels=labels))

    assert group(name="n", app="a", podtype="p") == "team/p"
    assert group(name="n", app="a") == "team/a"
    assert group(name="n", app="") == "team/n"
    assert group(tier="x") == ""
    assert group(shares_groups=True, app="a") == "a"


ENDED = (pod("1", "a", "Failed"), pod("2", "b", "Succeeded"))
REWARDS: dict[str, tuple[tuple[WatchedPod, ...], dict[str, float], dict[str, float]]] = {
    "a failure makes nine tenths of a reward of 1, and a success leaves it": (ENDED, {}, {"a": 0.9, "b": 1.0}),
    "rate and start may be others": (ENDED, {"rate": 0.5, "start": 0.6}, {"a": 0.3, "b": 0.8}),
    "of a pod without a node nothing is learnt": ((pod(node="", phase="Failed"),), {}, {}),
    "nor of one without a group": ((pod(phase="Failed", tier="x"),), {}, {}),
    "a running pod is no result yet": ((pod("1"),), {}, {}),
    "a failure that is seen again counts nothing twice": ((pod("1", "a", "Failed"),) * 5, {}, {"a": 0.9}),
    "nor does a restart": ((pod("1", "a", restarts=1),) * 5, {}, {"a": 0.9}),
    "each restart counts": ((pod("1", restarts=1), pod("1", restarts=3)), {}, {"a": 0.729}),
    # Two minutes are the first, and usual: worth 1. Eight: the mean is 0.9 · 2 + 0.1 · 8 = 2.6, worth 2.6 / 8.
    "runs are measured by the running mean of the group": (
        (pod("0", "b", "Succeeded", ran=2), pod("1", "a", "Succeeded", ran=8)),
        {},
        {"b": 1.0, "a": round(0.9 + 0.1 * 2.6 / 8, 6)},
    ),
}


@pytest.mark.parametrize(("pods", "learning", "expected"), REWARDS.values(), ids=REWARDS)
def test_what_pods_teach(pods: tuple[WatchedPod, ...], learning: dict[str, float], expected: dict[str, float]) -> None:
    assert rewards(*pods, **learning) == expected


@pytest.mark.parametrize(("minutes", "worth"), [(0, 0.0), (10, 0.5), (5, 1 / 3), (30, 0.75)])
def test_a_restart_after_the_mean_time_to_failure_is_worth_a_half(minutes: int, worth: float) -> None:
    assert rewards(pod(restarts=1, lived=minutes)) == {"a": round(0.9 + 0.1 * worth, 6)}
    # Of 20 minutes to failure, ten are worth a third.
    assert rewards(pod(restarts=1, lived=10), mean_time_to_failure=1200.0) == {"a": round(0.9 + 0.1 / 3, 6)}


def test_an_hour_of_healthy_running_is_a_success_and_a_restart_begins_it_anew() -> None:
    book = Book(Learning(start=0.0))

    def reward() -> float:
        return round(book.pairs["default/web", "a"].value, 6) if book.pairs else 0.0

    book.observe(pod(ready=True), 0.0)
    book.wait(HOUR - 1, 300.0)
    assert reward() == 0.0
    book.wait(HOUR, 300.0)
    assert reward() == 0.1
    book.wait(3 * HOUR, 300.0)  # two more: 0.9 · 0.1 + 0.1, 0.9 · 0.19 + 0.1
    assert reward() == 0.271
    book.observe(pod(ready=True, restarts=1), 3.5 * HOUR)
    assert reward() == round(0.271 * 0.9, 6)
    book.wait(4.4 * HOUR, 300.0)
    assert reward() == round(0.271 * 0.9, 6)
    book.observe(pod(ready=False, restarts=1), 4.4 * HOUR)
    book.wait(9 * HOUR, 300.0)
    assert reward() == round(0.271 * 0.9, 6)


def test_nodes_and_groups_have_rewards_of_their_own() -> None:
    book = Book()
    book.observe(pod("1", "a", "Failed"), 0.0)
    book.observe(pod("2", "b", "Failed"), 0.0)
    book.observe(pod("3", "a", "Failed", app="db"), 0.0)
    assert {node: round(one.value, 6) for node, one in book.nodes.items()} == {"a": 0.81, "b": 0.9}
    assert {group: round(one.value, 6) for group, one in book.groups.items()} == {
        "default/web": 0.81,
        "default/db": 0.9,
    }


def test_a_pod_that_does_not_start_in_time_counts_once_and_one_that_starts_does_not_at_all() -> None:
    book = Book()
    book.observe(pod("1", "a", "Pending"), 0.0)
    book.observe(pod("2", "b", "Pending"), 0.0)
    book.observe(pod("2", "b", "Running"), 50.0)
    for now in (59.0, 60.0, 61.0):
        book.wait(now, 60.0)
    assert book.pairs == {("default/web", "a"): Reward(0.9, 60.0)}


def test_what_nothing_was_heard_of_for_long_is_forgotten() -> None:
    book = Book(Learning(forget_after=60.0))
    book.observe(pod("1", phase="Failed"), 0.0)
    book.observe(pod("2", "b", phase="Succeeded", ran=5), 30.0)
    book.forget(61.0)
    assert (list(book.pairs), list(book.nodes)) == ([("default/web", "b")], ["b"])
    book.forget(91.0)
    assert not (book.pairs or book.nodes or book.groups or book.runtimes)


def test_the_state_is_kept_whole() -> None:
    book = Book()
    book.observe(pod("1", "a", "Failed", restarts=2), 0.0)
    book.observe(pod("2", "b", "Succeeded", ran=5), 10.0)
    book.observe(pod("3", "b", ready=True), 10.0)
    again = load(dump(book), Learning())
    assert again == book
    again.observe(pod("1", "a", "Failed", restarts=2), 20.0)
    assert again.pairs == book.pairs


def state(**parts: Any) -> str:
    empty: dict[str, Any] = {part: {} for part in ("pairs", "nodes", "groups", "runtimes", "pods", "refusals")}
    return json.dumps({"version": 2, **empty, **parts})


def test_what_is_said_to_have_happened_billions_of_times_is_counted_at_once() -> None:
    assert rewards(pod(restarts=2**31 - 1)) == {"a": 0.0}
    book = load(state(pods={"1": {"group": "g", "node": "a", "bound": 0.0, "healthy_since": -1e13}}), Learning(start=0))
    book.group_of_pod["1"] = "g"
    book.wait(0.0, 300.0)
    assert book.nodes["a"].value == 1.0
    event = {"metadata": {"uid": "e"}, "reason": FAILED, "regarding": {"uid": "1"}, "series": {"count": 2**31 - 1}}
    book.heard(decode(WatchedEvent, {**event, "related": {"kind": "Node", "name": "a"}}), 0.0)
    assert book.nodes["a"].value == 0.0


@given(st.integers(1, 50), st.floats(0.001, 1), st.floats(0, 1))
def test_many_results_at_once_are_those_one_after_the_other(times: int, rate: float, start: float) -> None:
    expected = start
    for _ in range(times):
        expected = (1 - rate) * expected + rate * 0.5
    learning = {"rate": rate, "start": start}
    assert rewards(pod(restarts=times, lived=10), **learning) == {"a": pytest.approx(expected, abs=1e-6)}


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 2, "pairs": 1}', '{"version": "2"}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no state of rewards"):
        load(text, Learning())


@pytest.mark.parametrize("reward", [-0.1, 1.5, 1e300])
def test_a_state_with_a_reward_that_is_none_is_refused(reward: float) -> None:
    for parts in ({"nodes": {"a": [reward, 0]}}, {"groups": {"g": [reward, 0]}}, {"pairs": {"g": {"a": [reward, 0]}}}):
        with pytest.raises(ValueError, match=r"no state of rewards: Expected `float` [<>]= [01]\.0"):
            load(state(**parts), Learning())


@pytest.mark.parametrize(("text", "version"), [("{}", 1), ('{"version": 3}', 3)])
def test_a_state_of_another_version_is_refused(text: str, version: int) -> None:
    with pytest.raises(ValueError, match=f"it is of version {version}, and this policyengine reads version 2"):
        load(text, Learning())


@given(st.lists(st.sampled_from(["Failed", "Succeeded"]), max_size=20), st.floats(0.001, 1), st.floats(0, 1))
def test_a_reward_is_from_0_to_1(phases: list[str], rate: float, start: float) -> None:
    found = rewards(*(pod(str(number), "a", phase) for number, phase in enumerate(phases)), rate=rate, start=start)
    assert all(0.0 <= value <= 1.0 for value in found.values())
