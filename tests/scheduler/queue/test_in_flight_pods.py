import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.framework.events import NODE_ADD
from policyengine.scheduler.queue.in_flight_pods import InFlightPods
from policyengine.scheduler.queue.queued_pod import QueuedPod
from tests.builders import make_pod

PODS = [QueuedPod(make_pod(f"p{i}").info(), 0.0) for i in range(4)]


@given(st.lists(st.one_of(st.just("event"), st.tuples(st.sampled_from(["start", "done"]), st.integers(0, 3)))))
def test_each_attempt_sees_exactly_the_events_since_it_began(steps):
    in_flight, seen, number = InFlightPods(), {}, 0
    for step in steps:
        if step == "event":
            number += 1
            in_flight.record(NODE_ADD, None, number)
            for events in seen.values():
                events.append(number)
        elif step[0] == "start" and PODS[step[1]].uid not in seen:
            in_flight.start(PODS[step[1]])
            seen[PODS[step[1]].uid] = []
        elif step[0] == "done":
            in_flight.done(PODS[step[1]].uid)
            seen.pop(PODS[step[1]].uid, None)
        for uid, events in seen.items():
            assert [happening.new for happening in in_flight.events_since_start(uid)] == events
        assert in_flight.event_count == max(map(len, seen.values()), default=0)


def test_a_pod_has_one_attempt_at_a_time():
    in_flight = InFlightPods()
    in_flight.start(PODS[0])
    with pytest.raises(AssertionError, match="in flight already"):
        in_flight.start(PODS[0])
