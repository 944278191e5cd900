from tests.scheduler.queue.queues import add, info, queue


def test_members_of_a_gang_that_grows_without_a_pause_are_told_once_a_minute():
    line, told = queue(), []
    for second in range(120):
        add(line, info(f"p{second}", gang="g", min="999"), now=float(second))
        line.advance(float(second))
        told += [(second, notice.message) for notice in line.take_notices() if notice.again and notice.pod.uid == "p0"]
    assert told == [(60, "gang pod-group: 61 of 999 members exist")]
    line.advance(124.0)
    assert {notice.message for notice in line.take_notices()} == {"gang pod-group: 120 of 999 members exist"}
