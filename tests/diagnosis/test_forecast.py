"""What becomes of the pods that wait: what the scheduler does, told beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.diagnosis.dump import read_objects
from policyengine.diagnosis.forecast import NOT_TRIED, Fate, Forecast, PodForecast, forecast
from policyengine.policy_compiler import compile_policy
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

NOW = 1_767_600_000.0
DEFAULT = 'policy "main" { scheduler "default-scheduler" %s }'
GANGS = """
  gang "pod-group" when pod.labels[?"crew"].hasValue() { key: pod.labels["crew"] min: 3 timeout: 30s }
"""


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10")


def pod(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu)


def told(
    *builders: NodeBuilder | PodBuilder, policies: list[str] | None = None, now: float = NOW, **more: Any
) -> Forecast:
    items = [builder.json() for builder in builders] + more.pop("objects", [])
    profiles = [compile_policy(text) for text in policies or [DEFAULT % ""]]
    return forecast(read_objects({"kind": "List", "items": items}), profiles, now, **more)


def fates(found: Forecast) -> dict[str, tuple[Fate, str]]:
    return {one.pod.removeprefix("default/"): (one.what, one.node) for one in found.pods}


def test_pods_take_room_from_each_other() -> None:
    found = told(node("a", cpu="1"), pod("p"), pod("q"))
    assert fates(found) == {"p": (Fate.BOUND, "a"), "q": (Fate.UNSCHEDULABLE, "")}
    assert found["default/q"].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert found.is_complete


def test_the_queue_tells_who_comes_first_by_priority_and_then_by_age() -> None:
    late, early = pod("a").created("2026-01-05T07:00:00Z"), pod("b").created("2026-01-05T06:00:00Z")
    important = pod("c").created("2026-01-05T07:30:00Z").set("spec.priority", 5)
    found = told(node("a", cpu="2"), late, early, important)
    assert [one.pod for one in found.pods] == ["default/c", "default/b", "default/a"]
    assert found["default/a"].what is Fate.UNSCHEDULABLE


def test_a_gang_that_lacks_members_is_held_and_says_how_far_it_is() -> None:
    found = told(node("a"), *(pod(f"c{i}").label("crew", "x") for i in (1, 2)), policies=[DEFAULT % GANGS])
    assert {one.what for one in found.pods} == {Fate.HELD}
    assert {one.message for one in found.pods} == {"gang pod-group: 2 of 3 members exist"}


def test_a_gang_that_has_too_little_room_is_refused_as_one() -> None:
    found = told(node("a", cpu="2"), *(pod(f"c{i}").label("crew", "x") for i in (1, 2, 3)), policies=[DEFAULT % GANGS])
    assert {one.what for one in found.pods} == {Fate.UNSCHEDULABLE}
    assert {one.message.partition(";")[0] for one in found.pods} == {"gang pod-group: room for 2 of 3 members"}


def test_a_preemptor_names_its_victims_and_when_it_is_bound() -> None:
    found = told(node("a", cpu="1"), pod("old").node("a"), pod("urgent").set("spec.priority", 9))
    urgent = found["default/urgent"]
    assert (urgent.what, urgent.node, urgent.victims) == (Fate.BOUND, "a", ("default/old",))
    assert dict(found.evicted) == {"default/old": "default/urgent"}


def test_a_pod_that_nobody_serves_is_told_the_nearest_name_first() -> None:
    other = 'policy "other" { scheduler "zebra" }'
    found = told(node("a"), pod("p").scheduler("defualt-scheduler"), policies=[other, DEFAULT % ""])
    assert found["default/p"].what is Fate.UNSERVED
    assert found["default/p"].served == ("default-scheduler", "zebra")


def test_gates_and_deletions_keep_a_pod_out() -> None:
    gated = pod("gated").set("spec.schedulingGates", [{"name": "later"}])
    leaving = pod("leaving").set("metadata.deletionTimestamp", "2026-01-05T07:00:00Z")
    found = told(node("a"), gated, leaving)
    assert fates(found) == {"gated": (Fate.GATED, ""), "leaving": (Fate.TERMINATING, "")}
    assert "later" in found["default/gated"].message


def test_a_permit_that_makes_a_pod_wait_for_ever_is_told_as_waiting() -> None:
    permit = 'permit "hold" when pod.name == "p" { delay: 14min }'
    found = told(node("a", cpu="1"), pod("p"), policies=[DEFAULT % permit])
    assert fates(found) == {"p": (Fate.WAITING, "a")} and found["default/p"].message == "waiting for hold"


HELD_BACK = """
  gang "crew" when pod.labels[?"crew"].hasValue() { key: pod.labels["crew"] min: 2 timeout: 30s }
  permit "long" when pod.labels[?"hold"].orValue("") == "long" { delay: 14min }
  permit "short" when pod.labels[?"hold"].orValue("") == "short" { delay: 4s }
"""


def crew(name: str, priority: int, **labels: str) -> list[PodBuilder]:
    """A gang of two pods."""
    members = [pod(f"{name}{number}").label("crew", name).set("spec.priority", priority) for number in (1, 2)]
    for member in members:
        for key, value in labels.items():
            member.label(key, value)
    return members


def test_a_pod_that_comes_to_wait_at_permit_late_is_still_waited_for() -> None:
    late = pod("late").label("hold", "short")
    found = told(node("a", cpu="2"), *crew("c", 10, hold="long"), late, policies=[DEFAULT % HELD_BACK])
    assert (found["default/late"].what, found["default/late"].after) == (Fate.BOUND, 34.0)


@pytest.mark.parametrize("now", [NOW, NOW + 0.3])
def test_a_pod_whose_grace_ends_goes_before_a_wait_at_permit_is_over(now: float) -> None:
    victim = pod("victim", cpu="2").node("a")
    waiting, preempting = crew("c", 10, hold="long"), crew("d", 5)
    for member in waiting:
        member.set("spec.nodeSelector", {"kubernetes.io/hostname": "b"})
    nodes = [node(name, cpu="2").label("kubernetes.io/hostname", name) for name in "ab"]
    found = told(*nodes, victim, *waiting, *preempting, policies=[DEFAULT % HELD_BACK], now=now)
    assert found.evicted == {"default/victim": "default/d1"}
    whole_seconds = NOW + 30 - now  # times of deletion are cut to them
    assert {(found[f"default/d{number}"].node, found[f"default/d{number}"].after) for number in (1, 2)} == {
        ("a", whole_seconds)
    }


def test_a_pod_waits_for_one_that_is_going_and_not_for_one_that_is_stuck() -> None:
    def world(deleted: str) -> PodForecast:
        going = pod("old").node("a").set("metadata.deletionTimestamp", deleted)
        return told(node("a", cpu="1"), going, pod("p"))["default/p"]

    soon, long_ago = world("2026-01-05T08:00:20Z"), world("2026-01-05T07:00:00Z")
    assert (soon.what, soon.after >= 20) == (Fate.BOUND, True)
    assert long_ago.what is Fate.UNSCHEDULABLE


def test_several_policies_serve_each_their_own() -> None:
    picky = 'policy "picky" { scheduler "picky" filter "b" { require node.name == "b" } }'
    found = told(node("a"), node("b"), pod("p").scheduler("picky"), pod("q"), policies=[picky, DEFAULT % ""])
    assert found["default/p"].node == "b" and found["default/q"].what is Fate.BOUND


def test_a_bound_on_the_work_is_told() -> None:
    found = told(node("a"), *(pod(f"p{number}") for number in range(10)), limit=8)
    assert not found.is_complete
    assert found["default/p0"].what is Fate.BOUND and found["default/p9"].message == NOT_TRIED


def test_asking_twice_gives_the_same_answer() -> None:
    objects = read_objects({"nodes": [node("a", cpu="1").json()], "pods": [pod("p").json(), pod("q").json()]})
    profiles = [compile_policy(DEFAULT % "")]
    assert forecast(objects, profiles, NOW) == forecast(objects, profiles, NOW)
