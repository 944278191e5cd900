"""Quotas: refused over the limit, over the guarantee only where a pod may borrow, and made good by reclaiming."""

from __future__ import annotations

import pytest

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import Namespace
from policyengine.scheduler.messages import BindSucceeded, ObjectObserved, PodDeleted
from tests.builders import PodBuilder, make_pod
from tests.scheduler.driver import Driver, binds, node, notes, pod, victims
from tests.scheduler.policy_members import driven

LIMITED = 'quota "a" when pod.namespace == "a" { limit: {cpu: 3} }'
GUARANTEED = 'quota "a" when pod.namespace == "a" { guarantee: {cpu: 3} }'
BY_NAMESPACE = 'quota "each" by pod.namespace { guarantee: {cpu: 4} borrow: true }'
TWO = """
quota "a" when pod.namespace == "a" { guarantee: {cpu: 4} borrow: true }
quota "b" when pod.namespace == "b" { guarantee: {cpu: 4} borrow: true }
"""


def of(namespace: str, name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name, namespace).req(cpu=cpu)


def bound(driver: Driver, *builders: PodBuilder) -> None:
    """Schedule the pods, and have the watch show them bound."""
    driver.see(*builders)
    placed = binds(driver.cycle())
    for builder in builders:
        uid = builder.json()["metadata"]["uid"]
        assert uid in placed, f"{uid} is {driver.places(uid)}"
        driver.send(BindSucceeded(uid))
        driver.see(builder.node(placed[uid]))


def test_pods_are_refused_over_the_limit_before_any_filter_is_asked() -> None:
    driver = driven(LIMITED).showing(node("n1"), of("a", "p1", "2"), of("a", "p2", "2"), of("b", "q", "2"))
    actions = driver.cycle()
    assert set(binds(actions)) == {"p1", "q"}
    assert notes(actions)[0][1].startswith(
        "0/1 nodes are available: quota a: 2 of 3 cpu are in use, the pod asks for 2."
    )


def test_a_filter_of_the_quota_s_name_waits_for_its_own_events_too() -> None:
    driver = driven(LIMITED + ' filter "a" { require node.labels[?"free"].hasValue() }')
    driver.see(node("n1"), of("a", "over", "4"), of("a", "filtered", "2"), of("b", "other", "2"))
    assert binds(driver.cycle()) == {}
    driver.see(node("n1").label("free", "yes"))
    driver.wait(20.0)
    assert set(binds(driver.cycle())) == {"filtered", "other"}


def test_pods_bound_by_anybody_count() -> None:
    driver = driven(LIMITED)
    driver.see(node("n1"), of("a", "foreign", "2").scheduler("another").node("elsewhere"), of("a", "p", "2"))
    assert binds(driver.cycle()) == {}


@pytest.mark.parametrize(("borrow", "fits"), [("", False), ("borrow: true", True), ("borrow: pod.priority > 5", False)])
def test_what_exceeds_the_guarantee_is_for_those_who_may_borrow(borrow: str, fits: bool) -> None:
    driver = driven(f'quota "a" when pod.namespace == "a" {{ guarantee: {{cpu: 3}} {borrow} }}')
    driver.see(node("n1"), of("a", "p1", "2"), of("a", "p2", "2"))
    assert ("p2" in binds(driver.cycle())) is fits


def test_a_borrower_is_still_held_by_the_limit() -> None:
    driver = driven('quota "a" when pod.namespace == "a" { guarantee: {cpu: 1} limit: {cpu: 3} borrow: true }')
    driver.see(node("n1"), of("a", "p1", "2"), of("a", "p2", "2"))
    assert set(binds(driver.cycle())) == {"p1"}


def test_a_when_without_a_value_counts_as_true_a_borrow_without_one_as_false() -> None:
    driver = driven('quota "all" when 1 / pod.priority > 0 { guarantee: {cpu: 3} borrow: 1 / pod.priority > 0 }')
    driver.see(node("n1"), pod("p1", "2"), pod("p2", "2"))
    assert set(binds(driver.cycle())) == {"p1"}


def test_a_pod_that_alone_is_over_the_limit_is_not_helped_by_preemption() -> None:
    driver = driven(LIMITED).showing(node("n1"), of("a", "p", "1"))
    driver.cycle()
    driver.see(of("a", "huge", "4").priority(10))
    assert victims(driver.cycle()) == []


def test_a_refused_pod_waits_for_a_pod_of_its_quota_to_go_and_for_nothing_else() -> None:
    driver = driven(LIMITED).showing(node("n1"))
    bound(driver, of("a", "p1", "2"), of("b", "q", "1"))
    driver.see(of("a", "p2", "2"))
    driver.cycle()
    driver.now += 20
    driver.send(PodDeleted("b", "q", "q"))
    driver.see(node("n2"))
    assert driver.places("p2") == ["unschedulable"]
    driver.send(PodDeleted("a", "p1", "p1"))
    assert set(binds(driver.cycle())) == {"p2"}


def test_what_is_written_into_a_refused_pods_status_does_not_have_it_tried_again() -> None:
    driver = driven(LIMITED).showing(node("n1"))
    bound(driver, of("a", "p1", "2"))
    driver.see(of("a", "p2", "2"))
    driver.cycle()
    driver.see(of("a", "p2", "2").condition("PodScheduled", "False"))
    assert driver.places("p2") == ["unschedulable"]
    driver.see(of("a", "p2", "1"))
    driver.now += 20
    assert set(binds(driver.cycle())) == {"p2"}


def test_a_pod_whose_labels_change_leaves_its_quota() -> None:
    driver = driven('quota "a" when pod.labels[?"team"].orValue("") == "a" { limit: {cpu: 3} }').showing(node("n1"))
    first = pod("p1", "2").label("team", "a")
    bound(driver, first)
    driver.see(pod("p2", "2").label("team", "a"))
    driver.cycle()
    driver.now += 20
    driver.see(first.label("team", "b"))
    assert set(binds(driver.cycle())) == {"p2"}


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_a_quota_short_of_its_guarantee_takes_from_those_beyond_theirs_whatever_their_priority(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="8"))
    bound(driver, *(of("b", f"b{i}", "2").priority(100) for i in range(4)))
    driver.see(of("a", "a1", "2"))
    assert len(victims(driver.cycle())) == 1


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_no_quota_takes_from_what_is_system_critical_only_a_higher_priority_does(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="8"))
    bound(driver, *(of("b", f"b{i}", "2").priority(2_000_000_000) for i in range(4)))
    driver.see(of("a", "a1", "2").priority(1_000_000_000))
    assert victims(driver.cycle()) == []
    driver.see(of("a", "a2", "2").priority(2_000_001_000))
    assert len(victims(driver.cycle())) == 1


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_what_others_are_guaranteed_is_not_taken_even_by_priority(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="8"))
    bound(driver, *(of("a", f"a{i}", "2") for i in range(2)), *(of("b", f"b{i}", "2") for i in range(2)))
    driver.see(of("a", "important", "2").priority(1000), pod("outsider", "2").priority(1000))
    # `a` may make room for its own; nobody may take from `b`.
    assert all(victim.startswith("a") for victim in victims(driver.cycle()))


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_a_borrower_does_not_reclaim(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="12"))
    bound(driver, *(of("b", f"b{i}", "2") for i in range(4)), *(of("a", f"a{i}", "2") for i in range(2)))
    driver.see(of("a", "more", "2"))
    assert victims(driver.cycle()) == []


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_several_small_borrowers_make_room_for_a_large_pod_but_never_more_than_was_borrowed(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="8"))
    bound(driver, *(of("b", f"b{i}", "1") for i in range(8)))
    driver.see(of("a", "large", "4"))
    assert len(victims(driver.cycle())) == 4
    driver = driven(quotas).showing(node("n1", cpu="7"))
    bound(driver, *(of("b", f"b{i}", "1") for i in range(7)))
    driver.see(of("a", "large", "4"))
    assert victims(driver.cycle()) == []


def test_a_large_borrower_goes_where_small_ones_would_not_suffice() -> None:
    driver = driven(
        'quota "a" when pod.namespace == "a" { guarantee: {cpu: 3} borrow: true }\n'
        'quota "b" when pod.namespace == "b" { guarantee: {cpu: 2} borrow: true }'
    )
    driver.see(node("n1", cpu="5"))
    bound(driver, of("b", "large", "3").priority(5), of("b", "small1", "1"), of("b", "small2", "1"))
    driver.see(of("a", "needy", "3"))
    assert victims(driver.cycle()) == ["large"]


@pytest.mark.parametrize("quotas", [TWO, BY_NAMESPACE])
def test_reclaimed_room_is_not_for_the_borrower_to_take_back(quotas: str) -> None:
    driver = driven(quotas).showing(node("n1", cpu="4"))
    bound(driver, of("b", "b1", "2").priority(100), of("b", "b2", "2").priority(100))
    driver.see(of("a", "a1", "2"))
    # `b` is within its guarantee, so nothing may be taken.
    assert victims(driver.cycle()) == []
    driver = driven(TWO.replace("cpu: 4", "cpu: 2")).showing(node("n1", cpu="4"))
    bound(driver, of("b", "b1", "2").priority(100), of("b", "b2", "2").priority(100))
    driver.see(of("a", "a1", "2"))
    (victim,) = victims(driver.cycle())
    driver.send(PodDeleted("b", victim, victim))
    driver.see(of("b", "again", "2").priority(100))
    placed = binds(driver.cycle()) | binds(driver.wait(11.0)) | binds(driver.cycle())
    assert set(placed) == {"a1"}


def test_guarantees_beyond_the_cluster_are_first_come_first_served() -> None:
    driver = driven(TWO.replace("cpu: 4", "cpu: 40")).showing(node("n1", cpu="8"))
    bound(driver, *(of("b", f"b{i}", "2") for i in range(4)))
    driver.see(of("a", "a1", "2"))
    assert victims(driver.cycle()) == []
    assert driver.places("a1") == ["unschedulable"]


def test_quotas_over_one_pod_must_all_let_it_pass() -> None:
    driver = driven('quota "org" when pod.namespace in ["a", "b"] { limit: {cpu: 3} }\n' + LIMITED.replace("3", "2"))
    driver.see(node("n1"), of("a", "p", "2"), of("b", "q", "2"))
    actions = driver.cycle()
    assert set(binds(actions)) == {"p"}
    assert "quota org: 2 of 3 cpu are in use" in notes(actions)[0][1]


# --- by a key --------------------------------------------------------------------------------------------


def named(name: str, version: int = 1, annotations: dict[str, str] | None = None, **labels: str) -> ObjectObserved:
    metadata = {"name": name, "uid": name, "resourceVersion": f"{version}", "labels": labels}
    return ObjectObserved("Namespace", decode(Namespace, {"metadata": metadata | {"annotations": annotations or {}}}))


BY_TEAM = 'quota "team" by pod.namespaceLabels[?"team"] { limit: {cpu: 3} }'


def test_a_team_of_several_namespaces_has_one_quota_and_another_team_another() -> None:
    driver = driven(BY_TEAM)
    for name, team in (("a", "x"), ("b", "x"), ("c", "y")):
        driver.send(named(name, team=team))
    driver.see(node("n1", cpu="20"), of("a", "p", "2"), of("b", "q", "2"), of("c", "r", "2"))
    actions = driver.cycle()
    assert set(binds(actions)) == {"p", "r"}
    assert "quota team of `x`: 2 of 3 cpu are in use, the pod asks for 2." in notes(actions)[0][1]


def test_pods_without_the_key_are_in_no_quota_and_those_whose_key_fails_share_one() -> None:
    driver = driven(BY_TEAM).showing(node("n1", cpu="20"), of("a", "p", "2"), of("b", "q", "2"))
    assert set(binds(driver.cycle())) == {"p", "q"}
    driver = driven('quota "q" by string(1 / pod.priority) { limit: {cpu: 3} }')
    driver.see(node("n1", cpu="20"), of("a", "p", "2"), of("b", "q", "2"), of("b", "r", "2").priority(1))
    assert set(binds(driver.cycle())) == {"r", "p"}


def test_a_namespace_that_changes_its_team_takes_its_pods_along_and_wakes_those_who_waited() -> None:
    driver = driven(BY_TEAM)
    driver.send(named("a", team="x"))
    driver.send(named("b", team="x"))
    driver.see(node("n1", cpu="20"))
    bound(driver, of("a", "p", "2"))
    driver.see(of("b", "q", "2"))
    assert binds(driver.cycle()) == {}
    driver.send(named("a", 2, team="y"))
    driver.wait(2.0)
    assert set(binds(driver.cycle())) == {"q"}


@pytest.mark.parametrize(
    ("amount", "fits"),
    [
        ('{"a": 1, "b": 5}[?pod.namespace].orValue(2)', {"b", "c"}),
        ("byName[?pod.namespace].orValue(2)", {"b", "c"}),
        ("byName[?pod.namespace]", {"b", "c"}),
        ('toQuantity(pod.namespaceAnnotations[?"cores"], cpu).orValue(1)', {"b"}),
        ('toQuantity(pod.namespaceAnnotations[?"cores"], cpu)', {"b", "c"}),
        ("most", {"a", "b", "c"}),
        ("most - 3", set()),
        ("1 * 1000m / pod.priority", set()),
    ],
)
def test_amounts_follow_from_the_key_from_params_and_from_the_namespace(amount: str, fits: set[str]) -> None:
    params = 'param most: cpu = 2 param byName: map(string, cpu) = {"a": 1, "b": 5}'
    driver = driven(f'{params} quota "q" by pod.namespace {{ limit: {{cpu: {amount}}} }}')
    driver.send(named("a", annotations={"cores": "1"}))
    driver.send(named("b", annotations={"cores": "5"}))
    driver.see(node("n1", cpu="20"), *(of(name, name, "2") for name in "abc"))
    assert set(binds(driver.cycle())) == fits


def test_a_raised_annotation_wakes_the_pods_of_its_namespace() -> None:
    driver = driven('quota "q" by pod.namespace { limit: {cpu: toQuantity(pod.namespaceAnnotations[?"cores"], cpu)} }')
    driver.send(named("a", annotations={"cores": "1"}))
    driver.see(node("n1", cpu="20"), of("a", "p", "2"))
    assert binds(driver.cycle()) == {}
    driver.send(named("a", 2, annotations={"cores": "2"}))
    driver.wait(2.0)
    assert set(binds(driver.cycle())) == {"p"}


def test_a_pod_of_another_key_that_goes_wakes_nobody() -> None:
    driver = driven('quota "each" by pod.namespace { limit: {cpu: 3} }').showing(node("n1", cpu="20"))
    bound(driver, of("a", "p", "2"), of("b", "other", "2"))
    driver.see(of("a", "q", "2"))
    driver.cycle()
    driver.send(PodDeleted("b", "other", "other"))
    driver.wait(2.0)
    assert driver.places("q") == ["unschedulable"]
    driver.send(PodDeleted("a", "p", "p"))
    driver.wait(2.0)
    assert set(binds(driver.cycle())) == {"q"}
