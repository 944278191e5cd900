"""Texts are proved in a process that can be killed: what a proof may take, and what becomes of one that ends oddly."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyengine.kube.policies import proving
from policyengine.kube.policies.compiling import TOO_LARGE
from policyengine.kube.policies.precedence import UNPROVED, Compiled, Problem, SourceKey
from policyengine.kube.policies.proving import Lane, Prover, Unproved, compiled_beside
from policyengine.plugins.registry import IN_TREE
from tests.kube.policies.unruly import registry

GOOD = {"a.policy": 'policy "p" { filter "f" { require node.ready } }'}
LIMIT = 0.4


@pytest.fixture(scope="module")
def prover() -> Iterator[Prover]:
    made = Prover(registry, LIMIT)
    yield made
    made.close()


async def said(prover: Prover, text: str, author: str = "jane") -> str:
    """What is wrong with the text, or why that is not known."""
    try:
        problem = await prover.problem(author, "a", {"a.policy": text})
    except Unproved as why:
        return f"unproved: {why}"
    return problem.message if problem else ""


TOO_LONG = f"compiling and testing it takes more than {LIMIT} s of CPU time; shorten it or its tests, or split it"
ENDS = {
    "burns": TOO_LONG,
    "hoards": TOO_LARGE.message,
    "hoards bit by bit": TOO_LARGE.message,
    "hoards and crashes": TOO_LARGE.message,
    "hoards and exits": TOO_LARGE.message,
    "crashes": "compiling and testing it ended in SIGSEGV, a bug",
    "exits": "unproved: its proof ended without an answer",
    "is killed": "unproved: its proof was ended by SIGKILL",
    "kills the server": "unproved: its proof ended without an answer",
    'policy "p" {': "the `{` of this policy is never closed by `}` [PE0106]",
    'policy "p" { filter "\ud800" }': "`a.policy` is not UTF-8: byte 0xed on line 1",
}


@pytest.mark.parametrize("text", ENDS)
async def test_however_a_proof_ends_that_is_said_and_the_next_text_is_proved(prover: Prover, text: str) -> None:
    assert ENDS[text] in await said(prover, text)
    found = await prover.compiled(SourceKey("ns", "good", "ConfigMap"), GOOD, True)
    if found.is_unproved:  # the server was dying when it was asked
        found = await prover.compiled(SourceKey("ns", "good", "ConfigMap"), GOOD, True)
    assert found.problem is None and [profile.name for profile in found.profiles] == ["p"]


async def test_two_that_burn_hold_up_a_quick_one_for_less_than_one_of_them_takes() -> None:
    prover = Prover(registry, 2.0)
    tasks = [asyncio.create_task(said(prover, text, text)) for text in ("burns", "burns", 'policy "quick" {')]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert done == {tasks[2]}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    prover.close()


async def test_a_proof_that_nobody_waits_for_is_killed(prover: Prover) -> None:
    waiting = asyncio.create_task(said(prover, "sleeps"))
    async with asyncio.timeout(30):
        sleeping = set[int]()
        while not sleeping:
            await asyncio.sleep(0.05)
            sleeping = proofs(prover)
        waiting.cancel()
        while sleeping:
            await asyncio.sleep(0.05)
            sleeping &= proofs(prover)
        assert not await said(prover, 'policy "p" {}'), "the lane is free"


def proofs(prover: Prover) -> set[int]:
    """The processes that prove: those below the supervisors, which are below the server."""
    assert prover._work.running is not None
    return {child for one in children(prover._work.running.process.pid) for child in children(one)}


def children(pid: int) -> set[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return set(map(int, found.stdout.split()))


async def test_a_proof_that_is_late_is_killed_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "PATIENCE", 1.0)
    prover = Prover(registry, LIMIT)
    found = await prover.compiled(SourceKey("ns", "late", "ConfigMap"), {"a.policy": "sleeps"}, True)
    message = "it was not proved within 1.4 s: the machine has too much to do; it is tried again"
    assert found == Compiled(problem=Problem(message, reason=UNPROVED))
    prover.close()


async def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    message = "no process to prove it in can be started: No such file or directory; give the policy as a file"
    assert await said(Prover(registry), "") == f"unproved: {message}"
    monkeypatch.setattr(sys, "platform", "win32")
    assert "cannot fork" in await said(Prover(registry), "")


DIES = """
import asyncio, os, signal
from policyengine.kube.policies.proving import Prover
from tests.kube.policies.unruly import registry

async def main():
    prover = Prover(registry)
    asyncio.ensure_future(prover.problem("jane", "a", {"a.policy": "sleeps"}))
    while prover._work.running is None:
        await asyncio.sleep(0.01)
    print(prover._work.running.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_the_processes_end_when_the_scheduler_is_killed() -> None:
    root = Path(__file__).resolve().parents[3]
    ended = subprocess.run([sys.executable, "-c", DIES], cwd=root, capture_output=True, text=True, check=False)
    group = int(ended.stdout)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("they live on")


async def test_a_lane_takes_next_whose_author_cost_least() -> None:
    lane, order = Lane(1.0), list[str]()

    async def prove(author: str) -> None:
        async with lane.turn(author):
            order.append(author)
            await asyncio.sleep(0)
            lane.cost[author] += 1.0

    tasks = [asyncio.create_task(prove(author)) for author in ("evil", "evil", "evil", "gone", "jane", "joe")]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["evil", "jane", "joe", "evil", "evil"]
    assert not lane.cost, "what nobody waited for is forgotten"


async def test_texts_are_compiled_in_a_thread_with_short_turns_that_the_process_does_not_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[bool, float]] = []

    def noting(*given: object, is_tested: bool) -> Compiled:
        seen.append((threading.current_thread().daemon, sys.getswitchinterval()))
        return Compiled()

    monkeypatch.setattr(proving, "compiled", noting)
    await compiled_beside(GOOD, IN_TREE)
    assert seen == [(True, pytest.approx(proving.TURN))]
