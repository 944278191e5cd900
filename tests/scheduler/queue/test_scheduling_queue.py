from dataclasses import replace

import pytest

from policyengine.cluster.update_events import pod_events
from policyengine.framework.events import ASSIGNED_POD_DELETE, NODE_ADD, WILDCARD
from policyengine.framework.profile import QueueSettings
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.queue import policy_replacement
from policyengine.scheduler.queue.queued_pods import Place
from tests.builders import make_pod
from tests.scheduler.driver import Driver, binds, node, pod
from tests.scheduler.invariants import validate_queue
from tests.scheduler.queue.queues import FIT, Gates, add, info, place, pop, queue, refuse, rules


def test_pods_leave_by_priority_then_by_time_then_in_the_order_in_which_they_came():
    line = queue()
    add(line, make_pod("late").priority(5).info(), now=2.0)
    add(line, make_pod("b").info(), make_pod("a").info(), make_pod("first").priority(5).info(), now=1.0)
    assert [pop(line) for _ in range(5)] == ["first", "late", "b", "a", None]


def test_a_refused_pod_sleeps_until_an_event_its_refuser_asked_for():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.0)
    line.move(NODE_ADD, None, None, 20.0)
    assert place(line, "p") is Place.UNSCHEDULABLE
    line.move(ASSIGNED_POD_DELETE, None, None, 20.0)
    assert place(line, "p") is Place.ACTIVE


def test_a_pod_woken_during_its_backoff_waits_for_its_end():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.5)
    line.move(ASSIGNED_POD_DELETE, None, None, 10.6)
    assert place(line, "p") is Place.BACKOFF
    assert line.next_wakeup() == 12.0
    line.advance(11.9)
    assert place(line, "p") is Place.BACKOFF
    line.advance(12.0)
    assert place(line, "p") is Place.ACTIVE


def test_a_pending_plugin_skips_the_backoff():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.0, plugins=frozenset(), pending=FIT)
    line.move(ASSIGNED_POD_DELETE, None, None, 10.1)
    assert place(line, "p") is Place.ACTIVE


def test_an_empty_active_queue_takes_from_backoff_before_its_time_but_not_from_errors():
    line = queue()
    add(line, info("error"))
    refuse(line, "error", 10.0, plugins=frozenset())
    add(line, info("p"))
    refuse(line, "p", 10.0)
    line.move(ASSIGNED_POD_DELETE, None, None, 10.0)
    assert (place(line, "p"), place(line, "error")) == (Place.BACKOFF, Place.BACKOFF)
    assert pop(line, 10.1) == "p"
    assert pop(line, 10.1) is None


def test_an_error_backs_off_by_the_number_of_errors_and_a_refusal_ends_the_row():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.0, plugins=frozenset())
    line.advance(12.0)
    assert line.backoff_q.expiry(refuse(line, "p", 12.0, plugins=frozenset())) == 14.0
    line.advance(15.0)
    popped = refuse(line, "p", 15.0)
    assert (popped.error_count, popped.unschedulable_count, popped.attempts) == (0, 1, 3)


@pytest.mark.parametrize(("event", "expected"), [(ASSIGNED_POD_DELETE, Place.BACKOFF), (NODE_ADD, Place.UNSCHEDULABLE)])
def test_an_event_during_the_attempt_is_held_against_its_refusal(event, expected):
    line = queue()
    add(line, info("p"))
    popped = line.pop(10.0)
    line.move(event, None, None, 10.1)
    line.failed(popped, 10.2, FIT)
    assert place(line, "p") is expected
    validate_queue(line)


def test_an_own_update_wakes_a_pod_if_its_refuser_asked_for_it():
    line = queue()
    old = info("p")
    add(line, old)
    refuse(line, "p", 10.0)
    annotated, labelled = make_pod("p").annotation("a", "1").info(), info("p", a="1")
    line.update(old, annotated, pod_events(old, annotated), 100.0)
    assert place(line, "p") is Place.UNSCHEDULABLE
    line.update(annotated, labelled, pod_events(annotated, labelled), 100.0)
    assert place(line, "p") is Place.ACTIVE
    assert line.pods.get("p").pod is labelled


def test_an_own_update_during_the_attempt_counts_too():
    line = queue()
    old, new = info("p"), info("p", a="1")
    add(line, old)
    popped = line.pop(10.0)
    line.update(old, new, pod_events(old, new), 10.1)
    line.failed(popped, 10.2, FIT)
    assert place(line, "p") is Place.BACKOFF
    assert popped.pod is new


def test_an_update_gives_an_active_pod_its_new_turn():
    line = queue()
    add(line, info("a"), info("b"))
    line.update(None, make_pod("b").priority(9).info(), [], 1.0)
    assert [pop(line), pop(line)] == ["b", "a"]


def test_a_pod_whose_key_fails_comes_last_and_is_not_lost():
    def key(pod, queued_at):
        return (-int(pod.labels["rank"]), queued_at, pod.uid)

    line = queue(queue_key=key)
    add(line, info("broken"), info("low", rank="1"), info("high", rank="2"))
    assert [pop(line) for _ in range(3)] == ["high", "low", "broken"]
    assert str(line.timeline.of("broken")[0]) == "queued last: message 'rank'"


def test_a_gate_is_asked_again_by_the_events_it_registered():
    verdicts = [Status(Code.UNSCHEDULABLE, ("not yet",)), SUCCESS]
    gate = Gates(NODE_ADD)
    gate.pre_enqueue = lambda pod, snapshot: verdicts.pop(0)
    line = queue(pre_enqueue=(gate,))
    add(line, info("p"))
    line.move(NODE_ADD, None, None, 1.0)
    assert place(line, "p") is Place.ACTIVE
    validate_queue(line)


def test_a_gate_that_fails_keeps_the_pod_out_and_says_how():
    gate = Gates(WILDCARD)
    gate.pre_enqueue = lambda pod, snapshot: 1 / 0
    line = queue(pre_enqueue=(gate,))
    add(line, info("p"))
    assert place(line, "p") is Place.GATED
    assert line.pods.get("p").gate_message == 'running PreEnqueue plugin "Gates": division by zero'


def test_positions_count_the_pods_that_come_before():
    line = queue()
    add(line, info("a"), info("b"), info("c"))
    assert [line.active_q.rank(name) for name in ("a", "b", "c")] == [0, 1, 2]
    pop(line)
    assert [line.active_q.rank(name) for name in ("a", "b", "c")] == [None, 0, 1]


def test_counts_name_every_place():
    line = queue()
    add(line, info("a"), info("b"), info("held", gang="g", min="2"), make_pod("gated").gate("x").info())
    refuse(line, "a", 1.0)
    expected = {"active": 1, "unschedulable": 1, "held": 1, "gated": 1, "backoff": 0, "in flight": 0}
    assert line.counts() == expected


def test_a_pod_is_flushed_after_five_minutes_at_the_next_look():
    line = queue()
    add(line, info("p"))
    refuse(line, "p", 10.0)
    assert line.next_wakeup() == 330.0
    line.advance(310.0)
    assert place(line, "p") is Place.UNSCHEDULABLE
    line.advance(330.0)
    assert place(line, "p") is Place.ACTIVE


def test_the_flush_takes_only_those_that_waited_longer():
    line = queue(queue=QueueSettings(flush_after=60.0))
    add(line, info("old"))
    refuse(line, "old", 0.0)
    add(line, info("new"))
    refuse(line, "new", 30.0)
    line.advance(90.0)
    assert (place(line, "old"), place(line, "new")) == (Place.ACTIVE, Place.UNSCHEDULABLE)
    validate_queue(line)


def test_a_new_policy_orders_and_admits_anew():
    line = queue()
    add(line, info("a", rank="1"), info("b", rank="2"), info("held", gang="g", min="2"))
    by_rank = replace(rules(), queue_key=lambda pod, at: (-int(pod.labels.get("rank", "0")), at), gangs=())
    policy_replacement.replace_profile(line, by_rank, [queued.pod for queued in line.pods.values()], (), 1.0)
    assert [pop(line) for _ in range(3)] == ["b", "a", "held"]


LATE = """policy "late" {
  scheduler "default-scheduler"
  filter "not yet" { require now >= timestamp("1970-01-01T00:18:20Z") else "it is too early" }
}"""  # 1100 seconds after the epoch; the driver starts at 1000


def test_a_pod_refused_for_the_hour_is_asked_again_when_a_minute_begins() -> None:
    driver = Driver(compile_policy(LATE)).showing(node(), pod())
    assert binds(driver.cycle()) == {}
    driver.wait(10)
    assert driver.state.next_wakeup() == 1020.0
    driver.wait(15)
    assert binds(driver.cycle()) == {}
    driver.wait(100)
    assert list(binds(driver.cycle()).values()) == ["n1"]


def test_the_passing_of_time_wakes_nobody_whose_rules_do_not_read_it() -> None:
    driver = Driver().showing(node(cpu="1"), pod(cpu="2"))
    driver.cycle()
    wakeup = driver.state.next_wakeup()
    assert wakeup is not None
    assert wakeup > 1300
