from math import inf

from tests.scheduler.queue.queues import add, info, queue


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
