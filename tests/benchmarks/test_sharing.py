"""What the measurement of a shared pool counts: nodes that are overfull, for how long, and what is made anew."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks import sharing
from benchmarks.sharing import NOW, PODS_PATH, Pool, Run
from policyengine.simulator.controllers.controller_client import Caller


class NotingCaller(Caller):
    """Notes what is asked for, and asks nobody."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any]] = []

    async def call(self, method: str, path: str, body: Any = None, *_: Any, **_named: Any) -> dict[str, Any]:
        self.calls.append((method, path, body))
        return {}


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def pod(name: str, node: str = "", going: bool = False) -> dict[str, Any]:
    meta = {"name": name} | ({"deletionTimestamp": "now"} if going else {})
    return {"metadata": meta, "spec": {"schedulerName": "ours"} | ({"nodeName": node} if node else {})}


def test_a_node_is_overfull_for_as_long_as_two_pods_exist_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        pool.is_open = True
        pool.see("ADDED", pod("a"))
        pool.see("MODIFIED", pod("a", "n1"))
        pool.see("ADDED", pod("b", "n1"))
        time.now = 1.5
        pool.see("MODIFIED", pod("b", "n1", going=True))
        await asyncio.sleep(0)
        time.now = 2.5
        pool.see("DELETED", pod("b", "n1", going=True))
        for _ in range(5):
            await asyncio.sleep(0)

    time, caller = Time(), NotingCaller()
    monkeypatch.setattr(sharing, "time", time)
    pool = Pool(caller)
    asyncio.run(scene())
    assert pool.overfull == [2.5]
    assert (pool.evicted, pool.bound, pool.since) == (1, 1, {})
    made, ended = sorted(caller.calls, key=lambda one: one[0], reverse=True)
    assert (made[0], made[1], made[2]["metadata"]["name"]) == ("POST", PODS_PATH, "bx")
    assert ended == ("DELETE", f"{PODS_PATH}/b", NOW)


def test_a_run_says_how_many_nodes_stayed_overfull() -> None:
    told = "2 nodes overfull, at most 2.50 s, 1 of them over 2 s; 3 evicted; 24 of 24 bound"
    assert str(Run([0.25, 2.5], 3, 24)) == told
