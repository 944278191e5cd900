"""PrioritySort: higher priority first, then whoever entered the queue first."""

from policyengine.cluster.pod_info import PodInfo
from policyengine.plugins.registry import build
from tests.builders import make_pod


def test_priority_counts_before_the_time_in_the_queue() -> None:
    key = build("PrioritySort").queue_key
    low, high = (PodInfo(make_pod(name).priority(value).build()) for name, value in (("low", 0), ("high", 10)))
    assert sorted([(key(low, 1.0), "low"), (key(low, 2.0), "later"), (key(high, 3.0), "high")])[0][1] == "high"
    assert key(low, 1.0) < key(low, 2.0)
