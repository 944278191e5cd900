"""Members that need no place: those that have succeeded, and those that another scheduler binds."""

from __future__ import annotations

import pytest

from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import ObjectDeleted, PodDeleted, ProfileReplaced
from tests.builders import PodBuilder
from tests.scheduler.driver import NAME, Driver, binds, node, notes, pod


def policy(more: str):
    return compile_policy(
        f'policy "p" {{ scheduler "{NAME}" gang "crew" when "crew" in pod.labels {{'
        f' key: pod.labels["crew"] min: 3 timeout: 60s {more} }} }}'
    )


FINISHED, ANY = "counts: finished", "anyScheduler: true"


def member(name: str) -> PodBuilder:
    return pod(name).label("crew", "c")


def other(name: str) -> PodBuilder:
    return member(name).scheduler("other")


def succeeded(name: str) -> PodBuilder:
    return member(name).node("n1").phase("Succeeded")


def driver(more: str) -> Driver:
    return Driver(policy(more)).showing(node(cpu="8"))


@pytest.mark.parametrize(
    ("more", "there"),
    [
        ("", succeeded("b")),
        (FINISHED, member("b").node("n1").phase("Failed")),
        (FINISHED, other("b").node("n1")),
    ],
    ids=["without counts one that succeeded", "one that failed", "without anyScheduler another scheduler's"],
)
def test_who_does_not_count_is_waited_for(more: str, there: PodBuilder) -> None:
    scheduler = driver(more).showing(succeeded("a"), there, member("c"))
    assert binds(scheduler.cycle()) == {} and scheduler.places("c") == ["held"]


def test_a_member_that_succeeds_goes_on_counting_while_it_exists():
    scheduler = driver(FINISHED).showing(member("a").node("n1"), member("b").node("n1"))
    scheduler.see(succeeded("a"), succeeded("b"), member("c"))
    assert binds(scheduler.cycle()) == {"c": "n1"}
    scheduler.see(member("c").node("n1"))
    scheduler.send(ObjectDeleted("FinishedPod", "default", "a"))
    scheduler.send(ObjectDeleted("FinishedPod", "default", "b"))
    scheduler.see(member("d"))
    assert scheduler.places("d") == ["held"]


def test_a_policy_that_comes_later_counts_who_has_succeeded_before():
    scheduler = driver("").showing(succeeded("a"), succeeded("b"), member("c"))
    scheduler.send(ProfileReplaced(policy(FINISHED)))
    scheduler.wait(2.0)
    assert binds(scheduler.cycle()) == {"c": "n1"}


def test_pods_of_another_scheduler_count_once_they_are_bound():
    scheduler = driver(ANY).showing(member("a"), member("b"), other("x"))
    assert binds(scheduler.cycle()) == {}
    assert scheduler.places("a", "b") == ["held", "held"]
    scheduler.see(other("x").node("n1"))
    scheduler.wait(2.0)
    assert binds(scheduler.cycle()) == {"a": "n1", "b": "n1"}


def test_a_member_that_waits_for_another_scheduler_says_so():
    scheduler = driver(ANY).showing(other("x"), member("a"))
    told = [message for _, message in notes(scheduler.see(member("b")))]
    wanted = "gang crew: 2 of 3 members exist; default/x of scheduler `other` waits for its own scheduler"
    assert set(told) == {wanted}


def test_when_one_of_another_scheduler_goes_the_others_wait_again():
    scheduler = driver(ANY).showing(other("x").node("n1"), member("a"))
    scheduler.send(PodDeleted("default", "x", "x"))
    scheduler.see(member("b"))
    assert scheduler.places("a", "b") == ["held", "held"]
