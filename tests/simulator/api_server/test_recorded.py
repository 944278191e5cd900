"""The recorded calls of a real kube-apiserver 1.36.2, made again in order, give what it gave.

The 74 calls are those of `../shared/recorded`; the 400 (versions, pages, time-outs, bad input, access) lie in
tests/record. What may differ is listed, with a reason each, in `tests/record/compare.py`.
"""

import json

import pytest

from tests.record.compare import compare
from tests.record.servers import embedded
from tests.record.session import recording


@pytest.mark.parametrize(("original", "count"), [(True, 74), (False, 400)])
async def test_every_recorded_call_is_answered_as_the_real_server_answered_it(original: bool, count: int) -> None:
    calls, steps = recording(original)
    # The server of the 74 calls left priorities to the pods.
    session = embedded(*(["Priority"] if original else []))
    await session.replay(calls, steps)
    problems = compare(calls, session.calls)
    assert not problems, "\n".join(f"{name}:\n  " + "\n  ".join(lines[:8]) for name, lines in problems.items())
    ended = {call["name"] for call in session.calls if call.get("ends")}
    assert ended >= {name for name, aside in steps.items() if aside.get("ends")}
    assert len(calls) == len({call["name"] for call in calls}) >= count


@pytest.mark.parametrize("part", ["status", "body"])
def test_a_comparison_finds_what_differs(part: str) -> None:
    calls, _ = recording()
    changed = json.loads(json.dumps(calls[:5]))
    changed[2]["response"][part] = 418
    assert list(compare(calls[:5], changed)) == [calls[2]["name"]]
    assert compare(calls[:5], calls[:4]) == {calls[4]["name"]: ["was not made"]}
    assert compare(calls[:4], calls[:5]) == {calls[4]["name"]: ["is not in the recording"]}
    assert compare(calls[:5], calls[:5]) == {}
