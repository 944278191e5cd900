"""Kubernetes' own PodGroups have the condition PodGroupScheduled, as kube-scheduler writes it."""

from __future__ import annotations

from dataclasses import replace

from policyengine.cluster.workload_objects import BetaPodGroup
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import BindFailed, BindFailure, CacheSynced, ObjectDeleted, ObjectPatchFailed
from tests.scheduler.driver import START, Code, Driver, Rule, binds, node
from tests.scheduler.gangs.native_groups import TEXT, member, said, scheduler, show_group, written

SCHEDULED = ("True", "Scheduled", "")
UNSCHEDULABLE = ("False", "Unschedulable", "pod group is unschedulable")
BOOT = "1970-01-01T00:16:40Z"
"""`START`, as the API writes it."""


def condition(status: str, since: str = BOOT, **more: object) -> dict[str, object]:
    reason, message = ("Scheduled", "") if status == "True" else UNSCHEDULABLE[1:]
    condition = {"type": "PodGroupScheduled", "status": status, "reason": reason, "message": message}
    return condition | {"lastTransitionTime": since, "observedGeneration": 1} | more


def test_a_gang_is_scheduled_with_the_decision_and_nothing_is_said_of_it_before_it_is_tried():
    driver = scheduler().showing(node("n1"))
    assert said([*show_group(driver), *driver.see(member("a")), *driver.cycle()]) == []
    assert driver.places("a") == ["held"]
    driver.see(member("b"))
    actions = driver.cycle()
    assert binds(actions) == {"a": "n1", "b": "n1"}
    said_of_it = condition("True")
    del said_of_it["message"]
    assert written(actions) == [[said_of_it]]


def test_a_gang_that_does_not_fit_is_unschedulable_and_told_once():
    driver = scheduler().showing(node("n1", cpu="1"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    assert said(driver.cycle()) == [UNSCHEDULABLE]
    driver.wait(600.0)
    assert said(driver.cycle()) == []
    assert said(show_group(driver, version=2, conditions=[condition("False")])) == []


def test_the_transition_has_the_time_of_the_status_and_other_conditions_stay():
    driver = scheduler().showing(node("n1", cpu="1"))
    other = {"type": "Other", "status": "True", "reason": "X", "lastTransitionTime": BOOT, "message": "m"}
    held = condition("False", message="another one")
    show_group(driver, conditions=[held, other])
    driver.see(member("a"), member("b"))
    driver.now += 60.0
    assert written(driver.cycle()) == [[other, condition("False")]]
    show_group(driver, version=2, conditions=[other, condition("False")])
    driver.now += 60.0
    driver.see(node("n2", cpu="1"))
    driver.wait(30.0)
    (conditions,) = written(driver.cycle())
    assert conditions[1]["status"] == "True"
    assert driver.now == START + 150.0
    assert conditions[1]["lastTransitionTime"] == "1970-01-01T00:19:10Z"


def test_in_the_api_of_1_37_the_condition_has_another_name():
    driver = scheduler().showing(node("n1", cpu="2"))
    show_group(driver, form=BetaPodGroup, disruptionMode={"all": {}}, preemptionPolicy="Never")
    driver.see(member("a"), member("b"))
    ((condition,),) = written(driver.cycle())
    assert (condition["type"], condition["status"]) == ("PodGroupInitiallyScheduled", "True")


def test_scheduled_stays_though_a_binding_fails_or_one_more_does_not_fit():
    driver = scheduler().showing(node("n1", cpu="2"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    assert said(driver.cycle()) == [SCHEDULED]
    show_group(driver, version=2, conditions=[condition("True")])
    driver.see(member("c"))
    assert said(driver.cycle()) == []
    assert driver.places("c") == ["unschedulable"]
    driver.send(BindFailed("a", BindFailure.REFUSED, "no"))
    driver.see(node("n1", cpu="1"))
    driver.wait(60.0)
    assert said(driver.cycle()) == []


def test_of_a_group_that_is_no_gang_the_first_that_fits_makes_it_scheduled():
    driver = scheduler().showing(node("n1", cpu="2"))
    show_group(driver, minimum=None)
    assert said(driver.see(member("a", cpu="3"))) == []
    assert said(driver.cycle()) == [UNSCHEDULABLE]
    driver.see(member("b"))
    assert said(driver.cycle()) == [SCHEDULED]


def test_a_gang_for_which_victims_go_waits_for_preemption():
    driver = scheduler().showing(node("n1", cpu="2"))
    show_group(driver)
    driver.see(member("low", group="", cpu="2").node("n1").phase("Running").priority(-1))
    driver.see(member("a"), member("b"))
    waits = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert said(driver.cycle()) == [("False", "Unschedulable", waits)]


def test_a_plugin_that_fails_is_an_error_of_the_scheduler():
    profile = compile_policy(TEXT)
    rule = Rule("Broken", lambda pod, node: Code.ERROR if pod.name == "b" else None)
    driver = Driver(replace(profile, filters=(*profile.filters, rule))).showing(node("n1"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    failure = 'failed to schedule other pod from a pod group: running "Broken" filter plugin: Broken says no'
    assert said(driver.cycle()) == [("False", "SchedulerError", failure)]


def test_members_that_wait_at_permit_are_not_scheduled_yet():
    permit = 'permit "settle" { delay: 30s, timeout: 60s }'
    text = TEXT.replace('  filter "pod-group-exists"', f'  {permit}\n  filter "pod-group-exists"', 1)
    driver = scheduler(text).showing(node("n1"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    assert said(driver.cycle()) == []
    assert driver.places("a", "b") == ["waiting at permit", "waiting at permit"]


def test_a_successor_writes_what_was_lost():
    driver = scheduler(synced=False)
    show_group(driver)
    driver.see(node("n1"), member("a").node("n1"), member("b").node("n1"))
    assert said(driver.send(CacheSynced())) == [SCHEDULED]


def test_a_group_that_comes_again_under_its_name_starts_anew():
    driver = scheduler().showing(node("n1", cpu="1"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    assert said(driver.cycle()) == [UNSCHEDULABLE]
    driver.send(ObjectDeleted("NativePodGroup", "default", "crew"))
    assert said(show_group(driver, version=5)) == []


def test_what_was_not_written_is_written_with_the_next_change():
    driver = scheduler().showing(node("n1"))
    show_group(driver)
    driver.see(member("a"), member("b"))
    (patch,) = [action for action in driver.cycle() if isinstance(action, PatchObject)]
    driver.send(ObjectPatchFailed(patch, BindFailure.OVERLOADED, "try later"))
    assert said(driver.see(member("a").node("n1"))) == [SCHEDULED]
    assert said(driver.see(member("b").node("n1"))) == []
