import pytest

from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.queue.backoff import BackoffQueue
from policyengine.scheduler.queue.queued_pods import QueuedPod
from tests.builders import make_pod


def queued(name="p", at=0.0, refusals=0, errors=0):
    pod = QueuedPod(make_pod(name).info(), at)
    pod.unschedulable_count, pod.error_count = refusals, errors
    if not errors:
        pod.unschedulable_plugins = frozenset({"Fit"})
    return pod


@pytest.mark.parametrize(
    ("count", "seconds"), [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (6, 10.0), (10_000, 10.0)]
)
def test_the_wait_doubles_up_to_the_longest(count, seconds):
    assert BackoffQueue(QueueSettings()).duration(count) == seconds


def test_a_pod_waits_through_the_second_in_which_its_backoff_ends():
    backoff = BackoffQueue(QueueSettings())
    pod = queued(at=10.4, refusals=1)  # ends at 11.4, in second 11
    backoff.push(pod, (0,))
    assert backoff.earliest == 11.0
    assert backoff.is_backing_off(pod, 11.9)
    assert backoff.pop_expired(11.9) is None
    assert not backoff.is_backing_off(pod, 12.0)
    assert backoff.pop_expired(12.0) is pod


def test_a_longest_wait_of_zero_switches_backoff_off():
    backoff = BackoffQueue(QueueSettings(max_backoff=0.0))
    assert not backoff.is_backing_off(queued(at=10.0, refusals=5), 10.0)


def test_consecutive_errors_count_instead_of_refusals():
    backoff = BackoffQueue(QueueSettings())
    assert backoff.expiry(queued(at=100.0, refusals=4, errors=1)) == 101.0
    assert backoff.expiry(queued(at=100.0, refusals=4)) == 108.0


def test_a_pod_never_tried_does_not_back_off():
    assert not BackoffQueue(QueueSettings()).is_backing_off(queued(at=5.0), 5.0)


def test_within_a_second_pods_leave_in_the_order_of_the_queue():
    backoff = BackoffQueue(QueueSettings())
    later, first, second = queued("later", 12.0, 1), queued("first", 10.9, 1), queued("second", 10.1, 1)
    for pod, order in ((later, 0), (second, 2), (first, 1)):
        backoff.push(pod, (order,))
    assert [backoff.pop_expired(20.0) for _ in range(3)] == [first, second, later]


def test_only_refused_pods_are_taken_before_their_time():
    backoff = BackoffQueue(QueueSettings())
    error, refused = queued("error", 1.0, errors=1), queued("refused", 9.0, refusals=3)
    backoff.push(error, (0,))
    assert not backoff.refusals
    backoff.push(refused, (0,))
    assert backoff.refusals.in_order() == [refused]
    assert backoff.pop_expired(100.0) is error
    assert backoff.pop_expired(100.0) is refused


def test_a_retry_after_outlasts_the_backoff():
    backoff = BackoffQueue(QueueSettings())
    pod = queued(at=10.0, errors=1)
    pod.not_before = 37.5
    assert backoff.expiry(pod) == 37.0
    assert backoff.is_backing_off(pod, 37.9)
    assert not backoff.is_backing_off(pod, 38.0)


def test_a_pod_moves_between_the_heaps_as_its_last_failure_says():
    backoff = BackoffQueue(QueueSettings())
    pod = queued(at=1.0, errors=1)
    backoff.push(pod, (0,))
    pod.error_count, pod.unschedulable_count, pod.unschedulable_plugins = 0, 1, frozenset({"Fit"})
    backoff.push(pod, (0,))
    assert backoff.refusals.pop() is pod
    assert backoff.pop_expired(100.0) is None
