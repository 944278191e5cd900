"""Versions, pages, time-outs, bad input and access: the same calls give what a real kube-apiserver 1.36.2 gave.

The recording is made by `make record`; the scripts that make the calls are in tests/record. What may differ is listed,
with a reason each, in `tests/simulator/api_server/recorded.py`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.record import scripts
from tests.record.compare import compare
from tests.record.servers import embedded

RECORDING = Path(scripts.__file__).parent / "recordings" / "kube-apiserver-1.36.2.json"
CALLS: list[dict[str, Any]] = json.loads(RECORDING.read_text(encoding="utf-8"))


async def test_every_call_is_answered_as_the_real_server_answered_it() -> None:
    _, session = embedded()
    await scripts.run(session, scripts.SCRIPTS)
    problems = compare(CALLS, session.calls)
    assert not problems, "\n".join(f"{name}:\n  " + "\n  ".join(lines[:8]) for name, lines in problems.items())
    assert len(CALLS) == len({call["name"] for call in CALLS}) >= 400


@pytest.mark.parametrize("part", ["status", "body"])
def test_a_comparison_finds_what_differs(part: str) -> None:
    changed = json.loads(json.dumps(CALLS[:5]))
    changed[2]["response"][part] = 418
    assert list(compare(CALLS[:5], changed)) == [CALLS[2]["name"]]
    assert compare(CALLS[:5], CALLS[:4]) == {CALLS[4]["name"]: ["was not made"]}
    assert compare(CALLS[:4], CALLS[:5]) == {CALLS[4]["name"]: ["is not in the recording"]}
    assert compare(CALLS[:5], CALLS[:5]) == {}
