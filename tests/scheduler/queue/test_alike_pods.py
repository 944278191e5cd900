from hypothesis import given
from hypothesis import strategies as st

from policyengine.scheduler.queue.alike_pods import AlikePods, in_front
from policyengine.scheduler.queue.queued_pods import Happening, QueuedPod
from tests.builders import make_pod

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.integers(0, 5)),
        st.tuples(st.just("look"), st.integers(0, 4)),
        st.tuples(st.just("firsts"), st.integers(0, 9), st.integers(0, 3), st.booleans()),
    ),
    max_size=40,
)


def waiting(name: int, turn: int, backs_off_until: float, refused_after: int = 0) -> QueuedPod:
    pod = QueuedPod(make_pod(str(name)).info(), 0.0)
    pod.turn, pod.backs_off_until, pod.seen, pod.refused_after = (turn, name), backs_off_until, turn, refused_after
    return pod


@given(steps)
def test_those_that_may_come_first_are_those_that_a_look_at_all_finds(steps):
    alike, now = AlikePods(), 0.5
    for what, *given_ in steps:
        if what == "add" and str(given_[0]) not in alike.pods:
            alike.add(waiting(given_[0], given_[1], now + given_[2] - 2.5, given_[2] % 3))
        elif what == "remove" and str(given_[0]) in alike.pods:
            alike.remove(str(given_[0]))
        elif what == "wait":
            now += given_[0]
        elif what == "look":
            alike.seen = given_[0]
        elif what == "firsts":
            happening = Happening(None, None, None, str(given_[0]), given_[1], 2 if given_[2] else 9)
            assert alike.firsts(happening, now) == in_front(alike.helped_by(happening), now)


def test_whoever_comes_after_another_in_the_queues_order_and_by_its_backoff_cannot_come_first():
    pods = [waiting(name, 0, until) for name, until in enumerate((15.0, 8.0, 9.0))]
    assert [pod.uid for pod in in_front(pods, 7.0)] == ["1", "0"]
    assert [pod.uid for pod in in_front(pods, 16.0)] == ["0"]


def test_a_pod_that_was_looked_at_waits_for_a_reservation_made_before_to_be_given_back():
    alike, undone = AlikePods(), Happening(None, None, None, undoes=6, number=1)
    alike.add(waiting(0, 5, 0.0))
    assert alike.helped_by(undone) == []
    alike.seen = 6
    assert [pod.uid for pod in alike.helped_by(undone)] == ["0"]
    pod = alike.any()
    alike.remove("0")
    assert pod.seen == 6, "wherever it waits next"
