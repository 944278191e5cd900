"""A binding that does not hold beside what others bound meanwhile: who gives way, who does not, and who decides it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any

import pytest

from policyengine.cluster.objects import parse_time
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Action, Bind, DeleteVictim, ReadNodePods
from policyengine.scheduler.binding import verification
from policyengine.scheduler.binding.verification import GIVES_WAY
from policyengine.scheduler.messages import (
    BindSucceeded,
    CacheLost,
    CacheSynced,
    NodePodsRead,
    PodDeleted,
    ProfileReplaced,
    ReadNodePodsFailed,
    VictimDeleted,
    VictimNotDeleted,
)
from policyengine.scheduler.other_schedulers import WATCHED
from tests.builders import PodBuilder
from tests.scheduler.driver import START, Driver, binds, deletions, node, notes, pod, victims

AT = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")


def of_set(name: str, cpu: str = "1") -> PodBuilder:
    return pod(name, cpu).owner("ReplicaSet", "set", uid="set")


def ours(name: str, at: str = AT[0], cpu: str = "1") -> PodBuilder:
    """A pod as it stands on the node, bound by somebody who verifies."""
    found = of_set(name, cpu).node("n1").annotation(GIVES_WAY, "some-policy")
    return found.condition("PodScheduled", "True", time=at)


def foreign(name: str = "foreign", cpu: str = "1") -> PodBuilder:
    return pod(name, cpu).scheduler("another").node("n1").condition("PodScheduled", "True", time=AT[1])


def bound(*builders: PodBuilder, cpu: str = "2") -> Driver:
    """A scheduler that bound these pods to n1 and has been told so."""
    driver = Driver(verifies=True).showing(node("n1", cpu=cpu), *builders)
    for uid in binds(driver.cycle()):
        driver.send(BindSucceeded(uid))
    return driver


def read(driver: Driver, *builders: PodBuilder) -> list[Action]:
    """The server says that these pods are on n1."""
    pods = []
    for builder in builders:
        driver._version += 1
        pods.append(builder.version(driver._version).build())
    return driver.send(NodePodsRead(ReadNodePods("n1"), tuple(pods)))


def nodes_read(actions: Iterable[Action]) -> list[str]:
    return [action.node for action in actions if isinstance(action, ReadNodePods)]


def eviction(actions: Sequence[Action]) -> DeleteVictim:
    (asked,) = deletions(actions)
    return asked


def test_the_nodes_pods_are_read_once_a_binding_is_created_and_the_pod_says_that_it_gives_way() -> None:
    driver = Driver(verifies=True).showing(node("n1"), of_set("p"))
    (asked,) = (action for action in driver.cycle() if isinstance(action, Bind))
    assert asked.annotations == {GIVES_WAY: asked.policy_hash}
    assert nodes_read(driver.send(BindSucceeded("p"))) == ["n1"]


def test_by_default_nothing_is_read_and_nothing_is_written_on_the_pod() -> None:
    driver = Driver().showing(node("n1"), of_set("p"))
    (asked,) = (action for action in driver.cycle() if isinstance(action, Bind))
    assert asked.annotations == {}
    assert nodes_read(driver.send(BindSucceeded("p"))) == []


def test_a_pod_that_fits_beside_all_that_came_stays() -> None:
    driver = bound(of_set("p"))
    assert read(driver, ours("p"), foreign()) == []


def test_a_pod_that_does_not_fit_beside_a_strangers_is_evicted_as_it_was_seen() -> None:
    driver = bound(of_set("p", "2"))
    asked = eviction(read(driver, foreign(), ours("p", cpu="2")))
    seen = driver.state.view.pods["p"].resource_version
    assert (asked.uid, asked.resource_version, asked.reason) == ("p", seen, "EvictionByScheduler")
    note = "another scheduler bound pods to n1 at the same time, beside which this one does not fit: Insufficient cpu"
    assert notes(driver.send(VictimDeleted(asked))) == [("Evicted", note)]
    assert driver.told("p")[-1] == "gives way"


def test_it_is_evicted_though_the_stranger_came_later_as_the_stranger_evicts_nobody() -> None:
    driver = bound(of_set("p", "2"))
    assert read(driver, ours("p", cpu="2")) == []
    assert nodes_read(driver.see(foreign())) == ["n1"]
    assert victims(read(driver, ours("p", cpu="2"), foreign())) == ["p"]


def test_after_a_minute_nobody_gives_way_any_more() -> None:
    driver = bound(of_set("p", "2"))
    assert read(driver, ours("p", cpu="2")) == []
    driver.wait(WATCHED + 1)
    driver.see(node("n2", cpu="8"), of_set("q"))
    assert binds(driver.cycle()) == {"q": "n2"}
    driver.send(BindSucceeded("q"))
    assert nodes_read(driver.see(foreign())) == []


@pytest.mark.parametrize("change", ["startTime", "phase"])
def test_a_pod_that_a_kubelet_has_taken_is_left_alone(change: str) -> None:
    driver = bound(of_set("p", "2"))
    there = ours("p", cpu="2")
    there = there.started(AT[1]) if change == "startTime" else there.phase("Running")
    assert victims(read(driver, there, foreign())) == []
    assert nodes_read(driver.see(foreign("again"))) == []


def test_a_pod_without_a_controller_is_left_to_the_kubelet_and_told_so_once() -> None:
    driver = bound(pod("p", "2"))
    bare = pod("p", "2").node("n1").annotation(GIVES_WAY, "h")
    said = notes(read(driver, foreign(), bare))
    assert [reason for reason, _ in said] == ["NotEvicted"]
    assert said[0][1].endswith("it has no controller to make it anew, so the kubelet decides")
    assert nodes_read(driver.see(foreign("again"))) == []


def test_another_that_gives_way_gives_way_to_a_pod_without_a_controller() -> None:
    driver = bound(of_set("p", "2"))
    bare = pod("sister", "1").scheduler("sister").node("n1").annotation(GIVES_WAY, "h")
    assert victims(read(driver, ours("p", cpu="2"), bare.condition("PodScheduled", "True", time=AT[1]))) == ["p"]


def test_where_nobody_came_since_the_decision_no_policy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any) -> str:
        raise AssertionError("asked")

    driver = Driver(verifies=True).showing(node("n1", cpu="3"), foreign("before"), of_set("p"))
    driver.cycle()
    driver.send(BindSucceeded("p"))
    monkeypatch.setattr(verification, "refusal_now", nobody)
    assert read(driver, foreign("before"), ours("p")) == []
    with pytest.raises(AssertionError, match="asked"):
        read(driver, foreign("before"), ours("p"), foreign("after"))


def test_a_cordon_or_a_taint_evicts_nobody_though_a_stranger_came() -> None:
    driver = bound(of_set("p"))
    driver.see(node("n1", cpu="2").unschedulable().taint("away"))
    assert victims(read(driver, ours("p"), foreign())) == []


def test_what_leaves_before_it_started_counts_no_more_and_what_is_on_its_way_not_yet() -> None:
    driver = bound(of_set("p", "2"))
    assert victims(read(driver, ours("p", cpu="2"), foreign().deleting())) == []


def test_a_hard_rule_of_the_policy_counts_as_room_does() -> None:
    alone = compile_policy(
        'policy "alone" { scheduler "default-scheduler" base none filter "alone" { require node.podCount < 1 } }'
    )
    driver = Driver(alone, verifies=True).showing(node("n1", cpu="8"), of_set("p"))
    driver.cycle()
    driver.send(BindSucceeded("p"))
    assert victims(read(driver, ours("p"))) == []
    assert victims(read(driver, ours("p"), foreign())) == ["p"]


def test_the_policy_that_decided_is_asked_not_the_one_that_serves_by_now() -> None:
    driver = bound(of_set("p"), cpu="2")
    no = 'policy "no" { scheduler "default-scheduler" filter "no" { require node.podCount < 0 } }'
    driver.send(ProfileReplaced(compile_policy(no)))
    assert victims(read(driver, ours("p"), foreign())) == []


# ---- two that both verify


def decided_by(mine: str, *there: PodBuilder) -> list[str]:
    """What the scheduler of one pod decides, shown all of them."""
    builder = next(one for one in there if one.build().metadata.name == mine)
    driver = bound(of_set(mine, "2"))
    assert builder.build().spec.node_name
    return victims(read(driver, *there))


@pytest.mark.parametrize("times", [(AT[0], AT[0]), (AT[0], AT[1]), (AT[1], AT[0])])
@pytest.mark.parametrize("is_turned", [False, True])
def test_of_two_that_exclude_each_other_exactly_the_later_gives_way(times: tuple[str, str], is_turned: bool) -> None:
    there = [ours("a", times[0], "2"), ours("b", times[1], "2")]
    later = max([("a", times[0]), ("b", times[1])], key=lambda one: (one[1], one[0]))[0]
    seen = there[::-1] if is_turned else there
    assert decided_by("a", *seen) + decided_by("b", *seen) == [later]


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_of_three_as_many_stay_as_there_is_room_for_whoever_decides(order: tuple[str, ...]) -> None:
    there = {name: ours(name, cpu="1") for name in "abc"}
    assert [gone for name in order for gone in decided_by(name, *(there[one] for one in order))] == ["c"]


def test_one_that_a_kubelet_has_taken_comes_before_an_earlier_one() -> None:
    there = [ours("a", AT[0], "2"), ours("b", AT[1], "2").started(AT[1])]
    assert decided_by("a", *there) + decided_by("b", *there) == ["a"]


def test_of_several_of_ours_only_as_many_go_as_have_no_room() -> None:
    driver = bound(of_set("a"), of_set("b"))
    assert victims(read(driver, ours("a"), ours("b"), foreign())) == ["b"]


# ---- reading and evicting again


def test_what_happens_while_the_node_is_read_has_it_read_once_more() -> None:
    driver = bound(of_set("p"))
    assert nodes_read(driver.see(foreign("one"), foreign("two"))) == []
    assert nodes_read(read(driver, ours("p"), foreign("one"))) == ["n1"]


def test_a_pod_that_was_bound_since_the_node_was_read_is_looked_at_by_the_next_reading() -> None:
    driver = bound(of_set("a"), cpu="2")
    driver.see(of_set("b"))
    assert binds(driver.cycle()) == {"b": "n1"}
    assert nodes_read(driver.send(BindSucceeded("b"))) == []
    assert nodes_read(read(driver, ours("a"))) == ["n1"]
    assert victims(read(driver, ours("a"), ours("b"), foreign())) == ["b"]


def test_a_node_that_could_not_be_read_is_read_again_later_each_time() -> None:
    driver = bound(of_set("p"))
    waits = []
    for _ in range(5):
        driver.send(ReadNodePodsFailed(ReadNodePods("n1")))
        began = driver.now
        assert nodes_read(driver.until_wakeup()) == ["n1"]
        waits.append(driver.now - began)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0]


def test_an_eviction_of_a_pod_that_changed_meanwhile_is_decided_anew() -> None:
    driver = bound(of_set("p", "2"))
    asked = eviction(read(driver, ours("p", cpu="2"), foreign()))
    assert victims(read(driver, ours("p", cpu="2"))) == []
    driver.send(VictimDeleted(asked, was_there=False))
    assert nodes_read(driver.until_wakeup()) == ["n1"]
    assert victims(read(driver, ours("p", cpu="2").started(AT[1]), foreign())) == []


def test_an_eviction_that_failed_is_tried_again() -> None:
    driver = bound(of_set("p", "2"))
    asked = eviction(read(driver, ours("p", cpu="2"), foreign()))
    driver.send(VictimNotDeleted(asked, "no route"))
    began = driver.now
    assert nodes_read(driver.until_wakeup()) == ["n1"]
    assert driver.now >= began + 1.0
    assert victims(read(driver, ours("p", cpu="2"), foreign())) == ["p"]


def test_nothing_is_evicted_while_the_server_may_have_gone_back() -> None:
    driver = bound(of_set("p", "2"))
    driver.send(CacheLost())
    assert victims(read(driver, ours("p", cpu="2"), foreign())) == []
    driver.send(CacheSynced())
    assert nodes_read(driver.until_wakeup()) == ["n1"]


def test_a_pod_that_is_gone_by_the_time_of_the_answer_is_nobodys_concern() -> None:
    driver = bound(of_set("p", "2"))
    asked = eviction(read(driver, ours("p", cpu="2"), foreign()))
    driver.send(PodDeleted("default", "p", "p"))
    assert notes(driver.send(VictimDeleted(asked)))[0][0] == "Evicted"


# ---- a new leader


def taken_over(mark: str | None, **changes: Any) -> list[str]:
    driver = Driver(verifies=True, synced=False)
    mark = driver.state.profiles[0].policy_hash if mark is None else mark
    stood = of_set("p").node("n1").annotation(GIVES_WAY, mark)
    driver.now = (parse_time(AT[0]) or START) + changes.get("later", 1.0)
    driver.see(node("n1"), stood.condition("PodScheduled", "True", time=AT[0]))
    return nodes_read(driver.send(CacheSynced()))


def test_a_new_leader_verifies_what_its_predecessor_bound_within_the_last_minute() -> None:
    assert taken_over(None) == ["n1"]
    assert taken_over(None, later=WATCHED + 1) == []


def test_what_another_policy_bound_a_new_leader_leaves_to_the_kubelet() -> None:
    assert taken_over("another") == []
