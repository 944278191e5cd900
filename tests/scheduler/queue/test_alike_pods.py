from hypothesis import given
from hypothesis import strategies as st

from policyengine.scheduler.queue.alike_pods import AlikePods, turn_at
from policyengine.scheduler.queue.queued_pods import Happening, QueuedPod
from tests.builders import make_pod

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.integers(0, 5)),
        st.tuples(st.just("first"), st.integers(0, 9), st.integers(0, 3)),
    ),
    max_size=40,
)


def waiting(name: int, turn: int, backs_off: float) -> QueuedPod:
    pod = QueuedPod(make_pod(str(name)).info(), 0.0)
    pod.turn, pod.backs_off_until, pod.seen = (turn, name), backs_off, turn
    return pod


@given(steps)
def test_the_first_is_the_one_that_a_look_at_all_of_them_finds(steps):
    alike, now = AlikePods(), 0.5
    for what, *given_ in steps:
        if what == "add" and str(given_[0]) not in alike.pods:
            alike.add(waiting(given_[0], given_[1], now + given_[2] - 2.5))
        elif what == "remove" and str(given_[0]) in alike.pods:
            alike.remove(str(given_[0]))
        elif what == "wait":
            now += given_[0]
        elif what == "first":
            concerns = Happening(None, None, None, str(given_[0]), undoes=given_[1]).concerns
            expected = min(filter(concerns, alike.pods.values()), key=lambda pod: turn_at(pod, now), default=None)
            assert alike.first(now, concerns) is expected


def test_one_that_backs_off_comes_after_those_that_do_not_and_before_whose_backoff_is_longer():
    alike = AlikePods()
    for name, backs_off in enumerate((15.0, 8.0, 8.0)):
        alike.add(waiting(name, 0, backs_off))
    assert [alike.first(now, lambda pod: True).uid for now in (7.0, 16.0)] == ["1", "0"]
