import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.framework.events import NODE_ADD
from policyengine.scheduler.queue.queued_pods import Happening, InFlightPods, PodHeap, QueuedPod
from tests.builders import make_pod

PODS = [QueuedPod(make_pod(f"p{i}").info(), 0.0) for i in range(8)]

operations = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 7), st.tuples(st.integers(0, 3), st.sampled_from("ab"))),
        st.tuples(st.just("discard"), st.integers(0, 7)),
        st.tuples(st.just("pop")),
    ),
    max_size=60,
)


@given(operations)
def test_it_is_a_sorted_list_in_which_a_pod_occurs_once(steps):
    heap, model, arrivals = PodHeap(), {}, 0
    for step in steps:
        if step[0] == "push":
            arrivals += 1
            heap.push(PODS[step[1]], step[2])
            arrived = model.get(PODS[step[1]].uid, (None, arrivals))[1]
            model[PODS[step[1]].uid] = (step[2], arrived, PODS[step[1]])
        elif step[0] == "discard":
            assert heap.discard(PODS[step[1]].uid) == (model.pop(PODS[step[1]].uid, None) is not None)
        else:
            expected = min(model.values(), key=lambda item: item[:2], default=(0, 0, None))[2]
            assert heap.pop() is expected
            if expected is not None:
                del model[expected.uid]
        ordered = [item[2] for item in sorted(model.values(), key=lambda item: item[:2])]
        assert len(heap) == len(model)
        assert heap.peek() is (ordered[0] if ordered else None)
        assert [heap.rank(pod.uid) for pod in ordered] == list(range(len(ordered)))


def test_stale_entries_do_not_pile_up():
    heap = PodHeap()
    for turn in range(10_000):
        heap.push(PODS[0], (turn,))
    assert len(heap._entries) < 200
    assert heap.pop() is PODS[0]
    assert heap.pop() is None


@given(st.lists(st.one_of(st.just("event"), st.tuples(st.sampled_from(["start", "done"]), st.integers(0, 3)))))
def test_each_attempt_sees_exactly_the_events_since_it_began(steps):
    in_flight, seen, number = InFlightPods(), {}, 0
    for step in steps:
        if step == "event":
            number += 1
            in_flight.record(Happening(NODE_ADD, None, number))
            for events in seen.values():
                events.append(number)
        elif step[0] == "start" and PODS[step[1]].uid not in seen:
            in_flight.start(PODS[step[1]])
            seen[PODS[step[1]].uid] = []
        elif step[0] == "done":
            in_flight.discard(PODS[step[1]].uid)
            seen.pop(PODS[step[1]].uid, None)
        for uid, events in seen.items():
            assert [happening.new for happening in in_flight.events_since_start(uid)] == events
        assert len(in_flight._events) == max(map(len, seen.values()), default=0)


def test_a_pod_has_one_attempt_at_a_time():
    in_flight = InFlightPods()
    in_flight.start(PODS[0])
    with pytest.raises(AssertionError, match="in flight already"):
        in_flight.start(PODS[0])
