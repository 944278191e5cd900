from math import inf

from policyengine.scheduler.queue.queued_pods import Place
from tests.builders import make_pod
from tests.scheduler.invariants import validate_queue
from tests.scheduler.queue.queues import FIT, add, info, place, queue, refuse


def test_a_gang_that_lost_a_member_is_held_again_wherever_its_members_are():
    line = queue()
    names = ["unschedulable", "backoff", "active", "gone"]
    add(line, *[make_pod(name).labels({"gang": "g", "min": "4"}).priority(-i).info() for i, name in enumerate(names)])
    refuse(line, "unschedulable", 10.0)
    refuse(line, "backoff", 10.0, plugins=frozenset())
    line.remove("gone")
    line.forget_member("gone", 10.0)
    assert {place(line, name) for name in names[:3]} == {Place.HELD}
    validate_queue(line)
    line.observe_member(info("new", gang="g", min="4"), 11.0)
    assert place(line, "active") is Place.ACTIVE
    assert place(line, "backoff") is Place.BACKOFF
    validate_queue(line)


def test_a_member_in_flight_when_its_gang_breaks_is_held_when_it_fails():
    line = queue()
    add(line, info("a", gang="g", min="2"), info("b", gang="g", min="2"))
    popped = line.pop(10.0)
    line.remove("b")
    line.forget_member("b", 10.0)
    assert popped.place is Place.IN_FLIGHT
    line.failed(popped, 10.1, FIT)
    assert place(line, "a") is Place.HELD
    validate_queue(line)


def test_members_are_told_how_far_their_gang_is_but_not_at_every_arrival():
    line = queue()
    add(line, *[info(f"p{number}", gang="g", min="9") for number in range(4)], now=1.0)
    told = [(notice.pod.uid, notice.message) for notice in line.take_notices()]
    assert told == [(f"p{number}", f"gang pod-group: {number + 1} of 9 members exist") for number in range(4)]
    assert line.next_wakeup() == 6.0
    line.advance(6.0)
    again = line.take_notices()
    assert [notice.pod.uid for notice in again] == ["p0", "p1", "p2"]
    assert {notice.message for notice in again} == {"gang pod-group: 4 of 9 members exist"}
    assert all(notice.again for notice in again)
    assert line.next_wakeup() == inf


def test_members_of_a_gang_that_grows_without_a_pause_are_told_once_a_minute():
    line, told = queue(), []
    for second in range(120):
        add(line, info(f"p{second}", gang="g", min="999"), now=float(second))
        line.advance(float(second))
        told += [(second, notice.message) for notice in line.take_notices() if notice.again and notice.pod.uid == "p0"]
    assert told == [(60, "gang pod-group: 61 of 999 members exist")]
    line.advance(124.0)
    assert {notice.message for notice in line.take_notices()} == {"gang pod-group: 120 of 999 members exist"}
