"""What the benchmark of the extender counts; no time is asserted."""

import itertools
import json

from benchmarks.extender import extender
from benchmarks.extender_load import bodies


async def test_both_ways_of_asking_are_measured_to_the_end() -> None:
    found = await extender(nodes=30, requests=40, rate=400.0, whole=6)
    assert (found.filter.count, found.prioritize.count, found.served.count) == (20, 20, 40)
    assert (found.whole_filter.count, found.whole_prioritize.count) == (3, 3)
    assert found.filter.median > 0 and found.request_cpu_us >= 0 and 0.05 < found.whole_mb < 0.5
    assert set(found.ratios) == {"request cpu / yardstick", "whole request cpu / yardstick"}


def test_a_pod_is_asked_about_twice_and_the_names_come_in_another_order_for_the_next() -> None:
    asked = {"workload": "peer-mixed", "nodes": 20, "requests": 4, "whole": False}
    first, again, second = [json.loads(body) for body in itertools.islice(bodies(asked), 3)]
    assert first == again and first["Pod"]["metadata"]["name"] != second["Pod"]["metadata"]["name"]
    assert first["NodeNames"] != second["NodeNames"] and sorted(first["NodeNames"]) == sorted(second["NodeNames"])
    whole = json.loads(next(bodies(asked | {"whole": True})))
    assert len(whole["Nodes"]["items"]) == 20 and whole["NodeNames"] is None
    assert 3000 < len(json.dumps(whole["Nodes"]["items"][0])) < 6000
