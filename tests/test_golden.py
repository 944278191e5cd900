"""Every decision in ../shared/golden, taken by kube-scheduler 1.36.2, against the default profile."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.scheduler.explain import explain
from tests.shared_facts import shared

CATEGORIES = (
    "resources",
    "taints",
    "nodeaffinity",
    "ports",
    "images",
    "spread",
    "podaffinity",
    "volumes",
    "mixed",
)
Json = Mapping[str, Any]


@dataclass
class Tally:
    """Agreements and differences by plugin."""

    agree: Counter[str] = field(default_factory=Counter)
    differ: Counter[str] = field(default_factory=Counter)
    unbuilt: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    first: list[str] = field(default_factory=list)

    def note(self, plugin: str, where: str, ours: object, theirs: object) -> None:
        if ours == theirs:
            self.agree[plugin] += 1
        else:
            self.differ[plugin] += 1
            if len(self.first) < 5:
                self.first.append(f"{where}: {plugin}: ours {ours}, kube-scheduler's {theirs}")

    def table(self) -> str:
        lines = [f"{'plugin':<34}{'agree':>8}{'differ':>8}"]
        plugins = sorted(self.agree.keys() | self.differ.keys())
        lines += [f"{plugin:<34}{self.agree[plugin]:>8}{self.differ[plugin]:>8}" for plugin in plugins]
        return "\n".join((*lines, *self.first))


def _clusters(category: str) -> Iterator[Json]:
    with gzip.open(shared(f"golden/{category}.jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _compare(tally: Tally, where: str, nodes: list[str], ours: Json, theirs: Json) -> None:
    tally.decisions += 1
    if "preFilter" in theirs or "preFilter" in ours:
        refused = theirs.get("preFilter", {})
        if refused.get("plugin") in IN_TREE or "preFilter" in ours:
            plugin = refused.get("plugin") or ours["preFilter"]["plugin"]
            tally.note(plugin, where, _status(ours.get("preFilter")), _status(refused or None))
        else:
            tally.unbuilt[refused["plugin"]] += 1
        return
    for node in nodes:
        refusal = theirs["rejected"].get(node)
        if refusal is not None and refusal["plugin"] not in IN_TREE:
            tally.unbuilt[refusal["plugin"]] += 1
            refusal = None
        mine = ours["rejected"].get(node)
        plugin = (refusal or mine or {"plugin": "(feasible)"})["plugin"]
        tally.note(plugin, f"{where} on {node}", _status(mine), _status(refusal))
    if ours["rejected"].keys() == theirs["rejected"].keys():
        _compare_scores(tally, where, ours, theirs)


def _compare_scores(tally: Tally, where: str, ours: Json, theirs: Json) -> None:
    """What is normalised over the feasible nodes can only be compared where they are the same."""
    for node, expected in theirs["scores"].items():
        mine = ours["scores"][node]
        for plugin in sorted(expected.keys() | mine.keys()):
            if plugin in IN_TREE:
                tally.note(f"{plugin} score", f"{where} on {node}", mine.get(plugin), expected.get(plugin))
            else:
                tally.unbuilt[plugin] += 1
        if expected.keys() <= IN_TREE.keys():
            tally.note("total", f"{where} on {node}", ours["total"][node], theirs["total"][node])


def _status(refusal: Json | None) -> tuple[str, str, tuple[str, ...]] | None:
    if refusal is None:
        return None
    return refusal["plugin"], refusal["code"], tuple(sorted(refusal["reasons"]))


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_decision_agrees_with_kube_scheduler(category: str) -> None:
    tally = Tally()
    profile = default_profile()
    for cluster in _clusters(category):
        nodes = [node["metadata"]["name"] for node in cluster["nodes"]]
        answers = explain(cluster, profile)
        for ours, theirs in zip(answers, cluster["result"], strict=True):
            assert ours["pod"] == theirs["pod"]
            _compare(tally, f"{category} {cluster['seed']} {theirs['pod']}", nodes, ours, theirs)
    assert tally.decisions == 300
    assert sum(tally.agree.values()) > tally.decisions
    assert not tally.differ, "\n" + tally.table()
    assert not tally.unbuilt


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_chosen_node_has_the_best_total(category: str) -> None:
    for cluster in _clusters(category):
        for answer in explain(cluster, default_profile()):
            if answer["total"]:
                assert answer["total"][answer["chosen"]] == max(answer["total"].values())
            else:
                assert answer["chosen"] is None
