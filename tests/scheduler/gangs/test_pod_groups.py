"""Gangs that are PodGroup objects: scheduler-plugins' and Kubernetes' own."""

from __future__ import annotations

import pytest

from policyengine.cluster.objects import decode
from policyengine.cluster.workload_objects import PodGroup
from policyengine.scheduler.actions import Action, PatchObject
from policyengine.scheduler.messages import CacheSynced, ObjectDeleted, ObjectObserved, PodDeleted
from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, binds, node, notes, pod
from tests.scheduler.gangs import native_groups
from tests.scheduler.gangs.native_groups import NAME


def scheduler(synced: bool = True) -> Driver:
    return native_groups.scheduler(synced=synced).showing(node("n1", cpu="4"))


def member(name: str, group: str = "crew", cpu: str = "1") -> PodBuilder:
    return pod(name, cpu).scheduler(NAME).label("scheduling.x-k8s.io/pod-group", group)


def show_group(driver: Driver, minimum: int, version: int, status: dict | None = None) -> list[Action]:
    metadata = {"name": "crew", "namespace": "default", "uid": "g", "resourceVersion": str(version)}
    json = {"metadata": metadata, "spec": {"minMember": minimum}, "status": status or {}}
    return driver.send(ObjectObserved("PodGroup", decode(PodGroup, json)))


def status(phase: str, **counts: int) -> dict:
    return {"phase": phase, "scheduled": 0, "running": 0, "succeeded": 0, "failed": 0} | counts


def statuses(actions: list[Action]) -> list[dict]:
    return [action.patch.patch["status"] for action in actions if isinstance(action, PatchObject)]


def test_a_pod_waits_for_the_object_of_its_group():
    driver = scheduler().showing(member("a"))
    refused = driver.cycle()
    assert binds(refused) == {}
    assert notes(refused)[0][1].startswith("0/1 nodes are available: PodGroup default/crew not found")
    show_group(driver, minimum=1, version=1)
    driver.wait(2.0)
    assert binds(driver.cycle()) == {"a": "n1"}


def test_a_group_may_be_named_by_an_annotation():
    named = pod("a").scheduler(NAME).annotation("scheduling.x-k8s.io/pod-group", "crew")
    driver = scheduler().showing(named)
    assert notes(driver.cycle())[0][1].startswith("0/1 nodes are available: PodGroup default/crew not found")
    show_group(driver, minimum=2, version=1)
    assert driver.places("a") == ["held"]
    driver.see(member("b"))
    assert binds(driver.cycle()) == {"a": "n1", "b": "n1"}


def test_a_group_that_is_changed_changes_what_its_pods_wait_for():
    driver = scheduler()
    show_group(driver, minimum=3, version=1)
    driver.see(member("a"), member("b"))
    assert driver.places("a", "b") == ["held", "held"]
    show_group(driver, minimum=2, version=2)
    assert binds(driver.cycle()) == {"a": "n1", "b": "n1"}


def test_a_group_that_is_deleted_midway_leaves_its_pods_waiting_for_it():
    driver = scheduler()
    show_group(driver, minimum=2, version=1)
    driver.see(member("a", cpu="3"), member("b", cpu="3"))
    assert binds(driver.cycle()) == {}
    driver.send(ObjectDeleted("PodGroup", "default", "crew"))
    driver.wait(20.0)
    assert "PodGroup default/crew not found" in notes(driver.cycle())[0][1]
    assert driver.places("a", "b") == ["unschedulable", "unschedulable"]


def test_how_far_the_group_is_is_written_back_once_for_each_version():
    driver = scheduler()
    assert statuses(show_group(driver, minimum=2, version=1)) == []
    assert statuses(driver.see(member("a"))) == [status("Pending")]
    assert statuses(driver.see(member("b"))) == [status("Scheduling")]
    assert statuses(show_group(driver, 2, 2, {"phase": "Scheduling"})) == []
    driver.cycle()
    assert statuses(driver.see(member("a").node("n1").phase("Running"))) == [
        status("Scheduling", scheduled=1, running=1)
    ]
    bound = driver.see(member("b").node("n1").phase("Running"))
    assert statuses(bound) == [status("Running", scheduled=2, running=2)]


def test_a_status_that_was_refused_is_written_again_when_the_group_changes():
    driver = scheduler()
    show_group(driver, minimum=2, version=1)
    driver.see(member("a"))
    assert statuses(show_group(driver, minimum=2, version=2)) == [status("Pending")]


def ended(name: str, phase: str = "Succeeded") -> PodBuilder:
    return member(name).node("n1").phase(phase)


def running_group(*names: str) -> Driver:
    driver = scheduler()
    show_group(driver, minimum=2, version=1)
    driver.see(*(member(name).node("n1").phase("Running") for name in names))
    return driver


def test_a_group_whose_pods_have_succeeded_is_finished_and_stays_so():
    driver = running_group("a", "b")
    assert statuses(driver.see(ended("a"))) == [status("Running", scheduled=2, running=1, succeeded=1)]
    finished = status("Finished", scheduled=2, succeeded=2)
    assert statuses(driver.see(ended("b"))) == [finished]
    assert statuses(show_group(driver, 2, 2, finished)) == []
    assert statuses(driver.see(member("c"))) == []
    assert statuses(driver.see(ended("c", "Failed"))) == []


def test_a_group_has_failed_once_one_pod_has_and_the_others_run_or_have_succeeded():
    driver = running_group("a", "b", "c")
    assert statuses(driver.see(ended("a", "Failed"))) == [status("Failed", scheduled=3, running=2, failed=1)]


@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_pod_that_finishes_leaves_one_watch_as_deleted_and_comes_by_another(deleted_first: bool) -> None:
    driver = running_group("a", "b")
    written = []
    for name in ("a", "b"):
        for is_deletion in (deleted_first, not deleted_first):
            gone = PodDeleted("default", name, name)
            written += statuses(driver.send(gone) if is_deletion else driver.see(ended(name)))
    assert written[-1] == status("Finished", scheduled=2, succeeded=2)


def test_a_scheduler_that_starts_late_finishes_the_groups_of_pods_that_have_finished():
    driver = scheduler(synced=False)
    driver.see(ended("a"), ended("b"))
    show_group(driver, minimum=2, version=1)
    assert statuses(driver.send(CacheSynced())) == [status("Finished", scheduled=2, succeeded=2)]


def test_finished_pods_of_a_group_without_an_object_are_not_kept():
    driver = scheduler()
    driver.see(ended("a"))
    assert driver.state._core.pod_groups.ended == {}


def test_a_pod_that_an_older_copy_of_the_server_has_running_counts_as_running():
    driver = running_group("a", "b")
    driver.see(ended("a"))
    again = driver.see(member("a").node("n1").phase("Running"))
    assert statuses(again) == [status("Running", scheduled=2, running=2)]


def test_pods_of_other_schedulers_and_of_no_group_count_for_nothing():
    driver = running_group("a")
    others = ended("x").scheduler("other"), ended("y").label("scheduling.x-k8s.io/pod-group", "")
    assert statuses(driver.see(*others)) == []


def test_what_is_kept_of_finished_pods_goes_with_the_group():
    driver = running_group("a", "b", "c")
    driver.see(ended("a", "Failed"))
    show_group(driver, 2, 2, status("Failed"))
    assert driver.state._core.pod_groups.ended == {}
