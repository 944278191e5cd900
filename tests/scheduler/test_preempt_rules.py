"""`preempt [when e] { victims: e order by … maxVictims: n }`: whom a policy lets go, and who goes first."""

from __future__ import annotations

from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, node, notes, pod, victims
from tests.scheduler.policy_members import driven
from tests.scheduler.storage import budget


def running(name: str, cpu: str = "1", on: str = "n1", started: str = "") -> PodBuilder:
    builder = pod(name, cpu).node(on).priority(0)
    return builder.set("status.startTime", started) if started else builder


def urgent(driver: Driver, cpu: str = "2") -> list[str]:
    """Whom a pod that needs room takes."""
    driver.see(pod("urgent", cpu).priority(10))
    return victims(driver.cycle())


def test_only_pods_that_the_policy_lets_go_are_victims() -> None:
    driver = driven('preempt { victims: victim.labels[?"tier"].orValue("") == "batch" }')
    driver.see(node("n1", cpu="4"), *(running(f"service{i}") for i in range(2)))
    driver.see(*(running(f"batch{i}").label("tier", "batch") for i in range(2)))
    assert sorted(urgent(driver)) == ["batch0", "batch1"]


def test_where_too_few_may_go_nobody_goes() -> None:
    driver = driven('preempt { victims: victim.labels[?"tier"].orValue("") == "batch" }')
    driver.see(node("n1", cpu="4"), *(running(f"service{i}") for i in range(3)))
    driver.see(running("batch").label("tier", "batch"))
    assert urgent(driver) == []


def test_victims_may_be_compared_with_the_pod_that_needs_room() -> None:
    driver = driven("preempt { victims: victim.namespace == pod.namespace }")
    driver.see(node("n1", cpu="2"), running("mine").set("metadata.namespace", "default"))
    driver.see(running("theirs").set("metadata.namespace", "other"))
    assert urgent(driver, "1") == ["mine"]


def test_a_function_may_be_asked_about_a_victim() -> None:
    driver = driven("function half(p: pod): int = p.priority / 2 preempt { victims: half(victim) < half(pod) - 4 }")
    driver.see(node("n1", cpu="2"), running("low"), running("near").priority(3))
    assert urgent(driver, "1") == ["low"]


def test_the_rule_s_order_says_who_goes_first() -> None:
    youngest = driven("preempt { order by victim.startedAt desc }")
    oldest = driven("preempt { order by victim.startedAt asc }")
    for driver, gone in ((youngest, "new"), (oldest, "old")):
        driver.see(node("n1", cpu="2"), running("old", started="2026-01-01T00:00:00Z"))
        driver.see(running("new", started="2026-01-02T00:00:00Z"))
        assert urgent(driver, "1") == [gone]


def test_a_victim_without_a_start_time_sorts_last_unless_missing_first() -> None:
    for missing, gone in (("", "started"), (" missing first", "waiting")):
        driver = driven(f"preempt {{ order by victim.startedAt asc{missing} }}")
        driver.see(node("n1", cpu="2"), running("started", started="2026-01-01T00:00:00Z"), running("waiting"))
        assert urgent(driver, "1") == [gone]


def test_without_an_order_a_victim_without_a_start_time_is_the_youngest() -> None:
    driver = driven("preempt { maxVictims: 5 }")
    driver.see(node("n1", cpu="2"), running("started", started="2026-01-01T00:00:00Z"), running("waiting"))
    assert urgent(driver, "1") == ["waiting"]


def test_a_node_that_would_lose_too_many_is_no_candidate() -> None:
    driver = driven("preempt { maxVictims: 1 }").showing(node("n1", cpu="2"), *(running(f"p{i}") for i in range(2)))
    driver.see(pod("urgent", "2").priority(10))
    actions = driver.cycle()
    assert victims(actions) == []
    assert "node(s) would lose more pods than `maxVictims` of the policy" in notes(actions)[0][1]
    driver.see(node("n2", cpu="2"), running("large", "2", on="n2"))
    driver.wait(11.0)
    assert victims(driver.cycle()) == ["large"]


def test_where_the_rule_does_not_apply_kube_scheduler_s_rules_hold() -> None:
    driver = driven("preempt when pod.priority > 100 { victims: false }")
    driver.see(node("n1", cpu="2"), running("p", "2"))
    assert urgent(driver) == ["p"]


def test_a_rule_never_lets_a_pod_of_equal_priority_go() -> None:
    driver = driven("preempt { victims: true }").showing(node("n1", cpu="2"), running("p", "2").priority(10))
    assert urgent(driver) == []


def test_a_victim_about_which_the_rule_has_no_value_stays() -> None:
    driver = driven("preempt { victims: 1 / victim.priority == 0 }").showing(node("n1", cpu="2"), running("p", "2"))
    assert urgent(driver) == []


def test_a_rule_that_keeps_nobody_takes_whom_kube_scheduler_would() -> None:
    with_rule, without = driven("preempt { victims: true }"), driven("")
    for driver in (with_rule, without):
        driver.see(node("n1", cpu="4"), node("n2", cpu="4"), running("low", "2"), running("lower", "2").priority(-1))
        driver.see(running("large", "3", on="n2"), running("small", "1", on="n2").priority(-5))
    assert urgent(with_rule) == urgent(without) == ["lower"]


# ---- gangs among the victims

GANG = """
gang "g" when "gang" in pod.labels {
  key: pod.labels[?"gang"].orValue("")
  min: toInt(pod.labels[?"min"]).orValue(2)
  timeout: 1min
}
"""


def member(name: str, on: str = "n1", gang: str = "x", cpu: str = "1", minimum: int = 2) -> PodBuilder:
    return running(name, cpu, on=on).label("gang", gang).label("min", str(minimum))


def test_a_gang_goes_as_a_whole_wherever_its_pods_stand() -> None:
    driver = driven(GANG).showing(node("n1", cpu="2"), node("n2", cpu="2"), member("x1"), member("x2", on="n2"))
    driver.see(running("n1-other").priority(20), running("n2-other", on="n2").priority(20))
    assert sorted(urgent(driver, "1")) == ["x1", "x2"]


def test_a_lone_pod_goes_rather_than_a_gang() -> None:
    driver = driven(GANG).showing(node("n1", cpu="1"), node("n2", cpu="1"), node("n3", cpu="1"))
    driver.see(member("x1"), member("x2", on="n2"), running("alone", on="n3"))
    assert urgent(driver, "1") == ["alone"]


def test_a_gang_with_a_member_that_may_not_go_keeps_all_of_them() -> None:
    driver = driven(GANG)
    driver.see(node("n1", cpu="1"), node("n2", cpu="1"), member("x1"), member("x2", on="n2").priority(20))
    assert urgent(driver, "1") == []


def test_members_beyond_the_minimum_go_on_their_own() -> None:
    driver = driven(GANG)
    driver.see(*(node(f"n{i}", cpu="1") for i in range(1, 4)), *(member(f"x{i}", on=f"n{i}") for i in range(1, 4)))
    assert len(urgent(driver, "1")) == 1


def test_a_budget_of_one_member_is_the_whole_gang_s() -> None:
    driver = driven(GANG)
    driver.observe(budget(kept="yes"))
    driver.see(*(node(f"n{i}", cpu="1") for i in range(1, 5)))
    driver.see(member("x1"), member("x2", on="n2").label("kept", "yes"))
    driver.see(member("y1", on="n3", gang="y"), member("y2", on="n4", gang="y"))
    assert sorted(urgent(driver, "1")) == ["y1", "y2"]
