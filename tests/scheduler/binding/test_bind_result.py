"""faults.md, 8 to 13: what becomes of a binding."""

import pytest

from policyengine.cluster.pod_info import seconds_or_none
from policyengine.scheduler.actions import Bind, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    CacheSynced,
    PodDeleted,
    ReadPodFailed,
)
from tests.scheduler.driver import Driver, binds, conditions, node, notes, pod, reads

MESSAGE = "the server said no"


@pytest.fixture
def driver():
    """One pod, being bound to the only node, which it fills."""
    driver = Driver().showing(node("n1", cpu="1"), pod("p", cpu="1"))
    assert binds(driver.cycle()) == {"p": "n1"}
    return driver


def reserved(driver):
    """Millicores taken on the node."""
    return int(driver.state.view.nodes.requested("cpu")[0])


def test_refused_tells_the_user_and_backs_off(driver):
    actions = driver.send(BindFailed("p", BindFailure.REFUSED, MESSAGE))
    text = f'running Bind plugin "DefaultBinder": {MESSAGE}'
    assert notes(actions) == [("FailedScheduling", text)]
    assert conditions(actions) == [("SchedulerError", text)]
    assert (driver.places("p"), reserved(driver)) == (["backoff"], 0)
    assert driver.cycle() == []
    driver.see(pod("p", cpu="1").condition("PodScheduled", "False", "SchedulerError", text))
    waits = []
    for _ in range(5):
        before = driver.now
        driver.until_wakeup()
        waits.append(driver.now - before)
        assert binds(driver.cycle()) == {"p": "n1"}
        again = driver.send(BindFailed("p", BindFailure.REFUSED, MESSAGE))
        assert (len(notes(again)), conditions(again)) == (1, [])
    assert waits == [2.0, 3.0, 5.0, 9.0, 11.0]


@pytest.mark.parametrize("failure", [BindFailure.WITHDRAWN, BindFailure.CONFLICT])
def test_a_pod_that_is_seen_bound_is_not_bound_again_and_stays_where_it_is(driver, failure):
    driver.see(pod("p", cpu="1").node("n1"))
    assert not driver.state.may_bind("p")
    assert driver.send(BindFailed("p", failure, MESSAGE)) == []
    assert (driver.places("p"), reserved(driver)) == (["bound"], 1000)


def test_an_earlier_request_that_landed_before_the_second_was_posted_is_a_success(driver):
    driver.send(BindUnknown("p", "timed out"))
    driver.read(pod("p", cpu="1").label("seen", "unassigned"))
    driver.see(pod("p", cpu="1").node("n1"))
    assert not driver.state.may_bind("p")
    actions = driver.send(BindFailed("p", BindFailure.WITHDRAWN, "not posted"))
    assert notes(actions) == [("Scheduled", "Successfully assigned default/p to n1")]


def test_what_a_pod_was_told_before_a_binding_is_told_again_where_nothing_shows_it(driver):
    """A condition that was not written yet is dropped as the binding goes out."""
    driver.see(pod("q", cpu="1"))
    told = conditions(driver.cycle())
    assert [reason for reason, _ in told] == ["Unschedulable"]
    driver.now += 10.0
    driver.send(BindFailed("p", BindFailure.OVERLOADED, MESSAGE))
    assert binds(driver.cycle()) == {"q": "n1"}
    driver.send(BindFailed("q", BindFailure.OVERLOADED, MESSAGE))
    driver.see(pod("large", cpu="1").priority(1))
    assert binds(driver.cycle()) == {"large": "n1"}
    driver.until_wakeup()
    assert told[0] in conditions(driver.cycle())


def test_conflict_forgets_and_adopts_what_is_read(driver):
    actions = driver.send(BindFailed("p", BindFailure.CONFLICT, MESSAGE))
    assert actions == [ReadPod("p", "default", "p", driver.now)]
    assert (driver.places("p"), reserved(driver)) == (["backoff"], 0)
    driver.see(node("n2"), pod("p", cpu="1").node("n2"))
    assert driver.places("p") == ["bound"]
    assert driver.cycle() == []


def test_not_found_gives_back_the_room_and_drops_the_pod_that_a_read_does_not_find(driver):
    assert driver.send(BindFailed("p", BindFailure.NOT_FOUND, MESSAGE)) == [ReadPod("p", "default", "p", driver.now)]
    assert (driver.places("p"), reserved(driver)) == (["backoff"], 0)
    driver.send(PodDeleted("default", "p", "p"))
    assert driver.places("p") == ["unknown"]


def test_a_pod_that_was_not_found_and_is_there_is_tried_again_after_its_backoff(driver):
    driver.send(BindFailed("p", BindFailure.NOT_FOUND, MESSAGE))
    driver.see(pod("p", cpu="1").label("seen", "unassigned"))
    assert driver.cycle() == []
    driver.until_wakeup()
    assert binds(driver.cycle()) == {"p": "n1"}


@pytest.mark.parametrize(("retry_after", "earliest", "latest"), [(0.0, 2.0, 2.0), (30.0, 33.0, 51.0)])
def test_overloaded_waits_as_long_as_the_server_asked_be_it_on_a_fast_clock(driver, retry_after, earliest, latest):
    assert driver.send(BindFailed("p", BindFailure.OVERLOADED, MESSAGE, retry_after)) == []
    assert (driver.places("p"), reserved(driver)) == (["backoff"], 0)
    before = driver.now
    driver.until_wakeup()
    assert earliest <= driver.now - before <= latest
    assert binds(driver.cycle()) == {"p": "n1"}


def test_pods_told_to_come_back_do_not_come_back_at_once():
    driver = Driver()
    names = [f"p{number}" for number in range(20)]
    driver.see(node("n1", cpu="100", pods="100"), *[pod(name) for name in names])
    driver.cycle()
    for name in names:
        driver.send(BindFailed(name, BindFailure.OVERLOADED, MESSAGE, 60.0))
    arrivals = []
    while driver.state.next_wakeup() is not None and driver.places(*names) != ["binding"] * 20:
        driver.until_wakeup()
        arrivals.append(len(binds(driver.cycle())))
    assert sum(arrivals) == 20
    assert max(arrivals) < 10


def test_the_room_of_a_failed_binding_wakes_others(driver):
    driver.see(pod("q", cpu="1"))
    driver.cycle()
    assert driver.places("q") == ["unschedulable"]
    driver.now += 10.0
    driver.send(BindFailed("p", BindFailure.REFUSED, MESSAGE))
    assert driver.places("q") == ["active"]
    assert binds(driver.cycle()) == {"q": "n1"}


def test_unknown_keeps_the_reservation_and_reads_the_pod(driver):
    assert driver.send(BindUnknown("p", "timed out")) == [ReadPod("p", "default", "p", driver.now)]
    assert (driver.places("p"), reserved(driver)) == (["binding"], 1000)
    driver.see(pod("q", cpu="1"))
    assert binds(driver.cycle()) == {}


@pytest.mark.parametrize(
    ("node_name", "told", "held"),
    [("n1", [("Scheduled", "Successfully assigned default/p to n1")], 1000), ("n2", [], 0)],
    ids=["on its node is a success", "elsewhere is adopted"],
)
def test_unknown_and_then_seen(driver, node_name, told, held):
    driver.send(BindUnknown("p", "timed out"))
    driver.see(node("n2"))
    assert notes(driver.see(pod("p", cpu="1").node(node_name))) == told
    assert (driver.places("p"), reserved(driver)) == (["bound"], held)


def test_unknown_and_then_read_unassigned_posts_the_same_binding_again(driver):
    driver.send(BindUnknown("p", "timed out"))
    (again,) = driver.read(pod("p", cpu="1").label("seen", "unassigned"))
    assert isinstance(again, Bind)
    assert (again.uid, again.node) == ("p", "n1")
    assert notes(driver.send(BindSucceeded("p"))) == [("Scheduled", "Successfully assigned default/p to n1")]


@pytest.mark.parametrize("later", [0.0, 1000.0])
def test_a_conflict_with_ourselves_keeps_the_reservation_until_it_is_seen(driver, later):
    driver.send(BindUnknown("p", "timed out"))
    driver.read(pod("p", cpu="1").label("seen", "unassigned"))
    driver.now += later
    assert driver.send(BindFailed("p", BindFailure.CONFLICT, MESSAGE)) == []
    assert (driver.places("p"), reserved(driver)) == (["binding"], 1000)
    assert reads(driver.until_wakeup()) == ["p"]
    driver.see(pod("p", cpu="1").node("n1"))
    assert (driver.places("p"), reserved(driver)) == (["bound"], 1000)


@pytest.mark.parametrize("failure", [BindFailure.NOT_FOUND, BindFailure.REFUSED, BindFailure.OVERLOADED])
def test_a_refusal_says_nothing_of_an_earlier_request_that_may_still_land(driver, failure):
    driver.send(BindUnknown("p", "timed out"))
    driver.read(pod("p", cpu="1").label("seen", "unassigned"))
    assert driver.send(BindFailed("p", failure, MESSAGE, 20.0)) == []
    assert (driver.places("p"), reserved(driver)) == (["binding"], 1000)
    before = driver.now
    assert reads(driver.until_wakeup()) == ["p"]
    assert driver.now - before >= 20.0
    driver.now += 60.0
    driver.read(pod("p", cpu="1").label("seen", "by a read that is older"))
    driver.send(BindFailed("p", failure, MESSAGE))
    assert (driver.places("p"), reserved(driver)) == (["binding"], 1000)
    driver.until_wakeup()
    driver.read(pod("p", cpu="1").label("seen", "when nothing can land any more"))
    driver.send(BindFailed("p", failure, MESSAGE))
    assert (driver.places("p"), reserved(driver)) == (["backoff"], 0)


def test_a_binding_whose_outcome_stays_unknown_is_posted_again_later_each_time(driver):
    driver.send(BindUnknown("p", "etcd is slow"))
    waits = []
    for number in range(5):
        (again,) = driver.read(pod("p", cpu="1").label("seen", str(number)))
        assert isinstance(again, Bind)
        assert driver.send(BindUnknown("p", "etcd is slow")) == []
        before = driver.now
        assert reads(driver.until_wakeup()) == ["p"]
        waits.append(driver.now - before)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0]


def test_what_a_watch_shows_is_no_answer_to_a_read(driver):
    """It may be older than the binding."""
    driver.send(BindUnknown("p", "timed out"))
    assert driver.send(driver.log[2][1]) == []
    assert driver.see(pod("p", cpu="1").label("seen", "late")) == []
    (again,) = driver.read(pod("p", cpu="1"))
    assert isinstance(again, Bind)


def test_a_read_that_fails_is_repeated_with_backoff_until_it_is_answered(driver):
    driver.send(BindUnknown("p", "timed out"))
    waits = []
    for _ in range(6):
        assert driver.send(ReadPodFailed("p")) == []
        assert reserved(driver) == 1000
        before = driver.now
        assert reads(driver.until_wakeup()) == ["p"]
        waits.append(driver.now - before)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    driver.send(PodDeleted("default", "p", "p"))
    assert (driver.places("p"), reserved(driver)) == (["unknown"], 0)
    assert driver.state.next_wakeup() is None


def test_a_read_that_is_to_come_later_comes_later(driver):
    driver.send(BindUnknown("p", "timed out"))
    driver.send(ReadPodFailed("p", 20.0))
    before = driver.now
    assert reads(driver.until_wakeup()) == ["p"]
    assert driver.now - before >= 22.0


def test_deleted_while_being_bound_releases_the_room(driver):
    driver.send(PodDeleted("default", "p", "p"))
    assert reserved(driver) == 0
    assert driver.send(BindFailed("p", BindFailure.NOT_FOUND, MESSAGE)) == []
    assert driver.send(BindSucceeded("p")) == []


def test_being_deleted_while_being_bound_releases_the_room(driver):
    driver.see(pod("q", cpu="1"))
    driver.cycle()
    driver.now += 10.0
    driver.see(pod("p", cpu="1").deleting())
    assert (driver.places("p"), reserved(driver)) == (["being deleted"], 0)
    assert driver.send(BindFailed("p", BindFailure.CONFLICT, MESSAGE)) == []
    assert binds(driver.cycle()) == {"q": "n1"}


def test_a_pod_recreated_under_its_name_while_being_bound_is_another_pod(driver):
    driver.see(pod("p", cpu="1").uid("p2").created("2026-01-02T00:00:00Z"))
    assert driver.places("p", "p2") == ["unknown", "active"]
    assert driver.send(BindFailed("p", BindFailure.CONFLICT, MESSAGE)) == []
    assert binds(driver.cycle()) == {"p2": "n1"}


def test_labels_changed_while_being_bound_change_nothing(driver):
    assert driver.see(pod("p", cpu="1").label("a", "b")) == []
    assert notes(driver.send(BindSucceeded("p"))) == [("Scheduled", "Successfully assigned default/p to n1")]
    assert driver.told("p") == ["queued", "attempted", "reserved", "bound"]


def test_outcomes_of_nobody_are_ignored():
    driver = Driver()
    for message in (
        BindSucceeded("x"),
        BindUnknown("x", MESSAGE),
        ReadPodFailed("x"),
        *(BindFailed("x", failure, MESSAGE) for failure in BindFailure),
    ):
        assert driver.send(message) == []


def test_an_older_word_of_a_pod_the_server_has_bound_does_not_queue_it_again(driver):
    driver.send(BindSucceeded("p"))
    assert driver.see(pod("p", cpu="1").label("older", "word")) == []
    assert (driver.places("p"), reserved(driver)) == (["binding"], 1000)
    assert driver.cycle() == []


def test_a_successor_tells_again_of_what_was_bound_since_its_predecessor_may_have_died():
    def bound(name, second):
        at = {"type": "PodScheduled", "status": "True", "lastTransitionTime": f"2026-01-05T08:00:{second:02}Z"}
        return pod(name).node("n1").set("status.conditions", [at])

    driver = Driver().showing(node("n1"), bound("early", 9), bound("late", 10), bound("later", 20), pod("waits"))
    driver.see(bound("strange", 20).scheduler("another"))
    told = driver.send(CacheSynced(unwritten_since=seconds_or_none("2026-01-05T08:00:10Z")))
    assert notes(told) == [("Scheduled", f"Successfully assigned default/{name} to n1") for name in ("late", "later")]
    assert notes(driver.send(CacheSynced())) == []
