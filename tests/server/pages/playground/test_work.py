"""The playground's questions are answered in a process that ends when they take too much."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from policyengine.kube.limited_work import Ended, LimitedWork
from policyengine.server.pages.playground import work
from tests.server.pages.playground.texts import POLICY, REGISTRY, SCENARIO, TOOLCHAIN

CLIFF = 'policy "p" { filter "f" { require node. } }'


@pytest.fixture(scope="module")
def limited() -> Iterator[LimitedWork]:
    made = LimitedWork(work.prepared, REGISTRY, TOOLCHAIN)
    yield made
    made.close()


async def answered(limited: LimitedWork, seconds: float = 20, **asked: Any) -> Ended:
    return await limited.ended(asked, seconds, 120)


async def test_a_policy_is_evaluated_and_edited_there(limited: LimitedWork) -> None:
    found = await answered(limited, ask="evaluate", policy=POLICY, before="", cluster=SCENARIO)
    assert found.answer["answer"]["bound"] == 6
    findings = await answered(limited, ask="findings", policy=POLICY.replace("filter", "filtr"))
    assert any(one["severity"] == 1 for one in findings.answer["answer"])
    offered = await answered(limited, ask="complete", policy=CLIFF, at={"line": 0, "character": 39})
    assert {"name", "free", "labels"} <= {one["label"] for one in offered.answer["answer"]}
    hovered = await answered(limited, ask="hover", policy=POLICY, at={"line": 2, "character": 39})
    assert "node.free" in hovered.answer["answer"]["contents"]["value"]


async def test_a_finding_brings_its_fixes(limited: LimitedWork) -> None:
    text = POLICY.replace("node.free.cpu >= 2", "node.free.cpu >= 2 && true")
    found = await answered(limited, ask="findings", policy=text)
    actions = [action for one in found.answer["answer"] for action in one["actions"]]
    assert actions and all(action["edits"] and action["title"] for action in actions)


ENDLESS = "nodes: [{name: n, count: 100}]\npods: [{name: p, every: 1s, until: 11d, runs: 20s}]"


async def test_a_scenario_without_end_is_ended_by_its_limit_of_cpu_time(limited: LimitedWork) -> None:
    found = await answered(limited, 0.5, ask="evaluate", policy=POLICY, before="", cluster=ENDLESS)
    assert (found.answer, found.by) == (None, signal.SIGPROF)


async def test_what_takes_too_much_memory_is_told(limited: LimitedWork) -> None:
    many = "nodes: [{name: n, count: 1000000}]\npods: []"
    found = await answered(limited, 60, ask="evaluate", policy=POLICY, before="", cluster=many)
    assert found.answer == {"unusable": work.TOO_LARGE}


async def test_a_bug_is_told_and_the_next_question_is_answered(limited: LimitedWork) -> None:
    found = await answered(limited, ask="evaluate", policy=3, before="", cluster="")
    assert "a bug; the server's log says where" in found.answer["unusable"]
    assert (await answered(limited, ask="start", what="riya")).answer["answer"]["policy"].startswith("//")
