"""What the benchmark of the extender counts; no time is asserted."""

import itertools
import json

from benchmarks.extender import extender
from benchmarks.load_process import extender_calls


async def test_both_ways_of_asking_are_measured_to_the_end() -> None:
    found = await extender(nodes=30, requests=40, rate=400.0, whole=6)
    assert [row.what.partition(",")[0] for row in found] == ["filter", "prioritize", "both"] * 2
    assert "names, 400 a second" in found[0].what and "node objects, 0.1 MB a request" in found[3].what
    assert all(row.value > 0 for row in found)


def test_a_pod_is_asked_about_twice_and_the_names_come_in_another_order_for_the_next() -> None:
    asked = {"workload": "peer-mixed", "nodes": 20, "requests": 4, "whole": False}
    calls = [*itertools.islice(extender_calls(asked), 3)]
    assert [verb for verb, _ in calls] == ["filter", "prioritize", "filter"]
    first, again, second = [json.loads(sent.partition(b"\r\n\r\n")[2]) for _, sent in calls]
    assert first == again and first["Pod"]["metadata"]["name"] != second["Pod"]["metadata"]["name"]
    assert first["NodeNames"] != second["NodeNames"] and sorted(first["NodeNames"]) == sorted(second["NodeNames"])
    whole = json.loads(next(extender_calls(asked | {"whole": True}))[1].partition(b"\r\n\r\n")[2])
    assert len(whole["Nodes"]["items"]) == 20 and whole["NodeNames"] is None
    assert 3000 < len(json.dumps(whole["Nodes"]["items"][0])) < 6000
