from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.queue.queued_pod import Place
from tests.scheduler.queue.queues import add, info, place, queue, refuse


def test_a_pod_is_flushed_after_five_minutes_at_the_next_look():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.0)
    assert line.next_wakeup() == 330.0
    line.advance(310.0)
    assert place(line, "p") is Place.UNSCHEDULABLE
    line.advance(330.0)
    assert place(line, "p") is Place.ACTIVE
    assert line.get("p").was_flushed


def test_the_flush_takes_only_those_that_waited_longer():
    line = queue(queue=QueueSettings(flush_after=60.0))
    add(line, info("old"))
    refuse(line, "old", 0.0)
    add(line, info("new"))
    refuse(line, "new", 30.0)
    line.advance(90.0)
    assert (place(line, "old"), place(line, "new")) == (Place.ACTIVE, Place.UNSCHEDULABLE)
    line.validate()
