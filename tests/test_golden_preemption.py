"""../shared/golden/preemption.jsonl.gz, decided by kube-scheduler 1.36.2: whom DefaultPreemption evicts, and where."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from policyengine.diagnosis.explain import explain
from policyengine.plugins.preemption import dry_run
from policyengine.plugins.preemption.victim_arithmetic import known_filters
from policyengine.plugins.registry import default_profile
from tests.shared_facts import shared

Json = Mapping[str, Any]


def _clusters() -> Iterator[Json]:
    with gzip.open(shared("golden/preemption.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _statuses(rejected: Json) -> dict[str, tuple[str, str, list[str]]]:
    return {node: (one["plugin"], one["code"], sorted(one["reasons"])) for node, one in rejected.items()}


def _agrees(ours: Json, theirs: Json, where: str) -> None:
    assert ours["pod"] == theirs["pod"], where
    assert _statuses(ours["rejected"]) == _statuses(theirs["rejected"]), where
    assert ours["scores"] == theirs["scores"], where
    assert ours["total"] == theirs["total"], where
    mine, expected = ours.get("preemption"), theirs.get("preemption")
    if mine is None or expected is None:
        assert mine is expected, where
        return
    assert mine["eligible"] == expected["eligible"], where
    assert mine.get("why") == expected.get("why"), where
    assert mine["candidates"] == expected["candidates"], where
    allowed = expected.get("chosen", [])
    assert mine["chosen"] in allowed if allowed else mine["chosen"] is None, where


@pytest.mark.parametrize("arithmetic", [True, False], ids=["at once", "one by one"])
def test_every_preemption_agrees_with_kube_scheduler(arithmetic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not arithmetic:
        monkeypatch.setattr(dry_run, "known_filters", lambda asked: (known_filters(asked)[0][:0], False))
    compared = preempting = 0
    for cluster in _clusters():
        for ours, theirs in zip(explain(cluster, default_profile()), cluster["result"], strict=True):
            _agrees(ours, theirs, f"{cluster['seed']} {theirs['pod']}")
            compared += 1
            preempting += bool(ours.get("preemption", {}).get("candidates"))
    assert compared == 500
    assert preempting == 167
