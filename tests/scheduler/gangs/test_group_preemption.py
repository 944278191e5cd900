"""Room for a whole PodGroup: where it has a priority, which the gate WorkloadAwarePreemption brings."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.gangs import group_preemption
from policyengine.scheduler.messages import PodDeleted, VictimDeleted
from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, binds, deletions, node, pod, victims
from tests.scheduler.gangs.native_groups import member, said, scheduler, show_group
from tests.scheduler.storage import budget


def preempting(driver: Driver, minimum: int = 2, priority: int = 10, **spec: Any) -> Driver:
    show_group(driver, minimum, disruptionMode="Pod", priority=priority, **spec)
    return driver


def low(name: str, on: str, cpu: str = "1", priority: int = 0) -> PodBuilder:
    return pod(name, cpu).scheduler("other").node(on).phase("Running").priority(priority)


def test_the_least_important_go_on_whichever_nodes_and_no_more_than_it_takes():
    driver = scheduler().showing(node("n1", "2"), node("n2", "2"))
    driver.see(low("a", "n1", priority=5), low("b", "n1", priority=1), low("c", "n2", priority=2), low("d", "n2"))
    preempting(driver).showing(member("x"), member("y"))
    actions = driver.cycle()
    assert sorted(victims(actions)) == ["b", "d"]
    assert said(actions) == [("False", "Unschedulable", "pod group is unschedulable")]
    asked = deletions(actions)
    assert {one.message for one in asked} == {
        "pod-group-scheduler: preempting to accommodate a higher priority podgroup"
    }
    events = [one for victim in asked for one in driver.send(VictimDeleted(victim)) if isinstance(one, RecordEvent)]
    assert {event.note for event in events} == {"Preempted by podgroup crew on node cluster"}
    for victim in asked:
        driver.send(PodDeleted("default", victim.name, victim.uid))
    driver.wait(30.0)
    assert sorted(binds(driver.cycle()).values()) == ["n1", "n2"]


def test_the_priority_of_the_group_counts_not_that_of_its_pods():
    driver = scheduler().showing(node("n1", "2"))
    driver.see(low("a", "n1", cpu="2", priority=5))
    preempting(driver, priority=5).showing(member("x").priority(100), member("y").priority(100))
    actions = driver.cycle()
    assert victims(actions) == []
    why = "pod group is unschedulable, No preemption victims found for incoming preemptor"
    assert said(actions) == [("False", "Unschedulable", why)]


def test_nobody_goes_for_a_group_that_would_not_fit_though_all_went():
    driver = scheduler().showing(node("n1", "2"))
    driver.see(low("a", "n1"))
    preempting(driver, minimum=3).showing(member("x"), member("y"), member("z"))
    actions = driver.cycle()
    assert victims(actions) == []
    assert said(actions)[0][2] == "pod group is unschedulable, pod group is unschedulable"


def test_one_member_that_preempts_never_speaks_for_all():
    driver = scheduler().showing(node("n1", "2"))
    driver.see(low("a", "n1", cpu="2"))
    never = member("y").set("spec.preemptionPolicy", "Never")
    preempting(driver).showing(member("x"), never)
    actions = driver.cycle()
    assert victims(actions) == []
    assert said(actions)[0][2] == "pod group is unschedulable, not eligible due to preemptionPolicy=Never."


def test_a_group_that_is_disrupted_as_one_goes_whole_and_is_spared_before_single_pods():
    driver = scheduler().showing(node("n1", "1"), node("n2", "1"), node("n3", "1"))
    show_group(driver, 2, name="pair", disruptionMode="PodGroup", priority=0)
    driver.see(
        *(member(name, group="pair").node(on).phase("Running") for name, on in (("p", "n1"), ("q", "n2"))),
        low("single", "n3"),
    )
    show_group(driver, 1, name="one", disruptionMode="Pod", priority=10)
    preempting(driver, minimum=2).showing(member("x"), member("y"))
    assert sorted(victims(driver.cycle())) == ["p", "q"]


def test_budgets_are_kept_where_others_can_go():
    driver = scheduler().showing(node("n1", "2"))
    driver.observe(budget(app="kept"))
    driver.see(low("a", "n1").label("app", "kept"), low("b", "n1", priority=5))
    preempting(driver, minimum=2).showing(member("x", cpu="500m"), member("y", cpu="500m"))
    assert sorted(victims(driver.cycle())) == ["b"]


@pytest.mark.parametrize("minimum", [1, None])
def test_a_pod_that_needs_no_mates_makes_room_as_for_its_group(minimum):
    driver = scheduler().showing(node("n1", "2"))
    show_group(driver, 2, name="pair", disruptionMode="PodGroup", priority=0)
    driver.see(*(member(name, group="pair").node("n1").phase("Running").priority(100) for name in "pq"))
    show_group(driver, minimum, disruptionMode="Pod", priority=10)
    driver.see(member("x"))
    assert sorted(victims(driver.cycle())) == ["p", "q"]
    for name in "pq":
        driver.send(PodDeleted("default", name, name))
    driver.wait(3.0)
    assert binds(driver.cycle()) == {"x": "n1"}


def test_a_group_without_a_priority_makes_room_member_by_member_though_it_has_the_default_disruption_mode():
    driver = scheduler().showing(node("n1", "2"))
    driver.see(low("a", "n1", cpu="2", priority=-1))
    show_group(driver, disruptionMode="Pod")
    driver.see(member("x"), member("y"))
    assert sorted(victims(driver.cycle())) == ["a"]


def test_halving_finds_the_victims_that_one_by_one_finds(monkeypatch):
    def one_by_one(units, fits):
        for unit in units:
            fits([unit])

    preempted = 0
    for seed in range(4):
        found = []
        for way in (group_preemption._put_back, one_by_one):
            monkeypatch.setattr(group_preemption, "_put_back", way)
            rng = Random(seed)
            driver = scheduler().showing(*(node(f"n{number}", "4") for number in range(4)))
            for number in range(12):
                cpu, priority = str(rng.randint(1, 2)), rng.randint(0, 3)
                driver.see(low(f"v{number}", f"n{number % 4}", cpu, priority).set("status.startTime", began(rng)))
            count = rng.randint(2, 5)
            preempting(driver, minimum=count).showing(*(member(f"m{one}", cpu="2") for one in range(count)))
            found.append(sorted(victims(driver.cycle())))
        assert found[0] == found[1]
        preempted += len(found[0])
    assert preempted > 4


def began(rng: Random) -> str:
    return f"2026-01-05T00:00:{rng.randint(10, 59)}Z"
