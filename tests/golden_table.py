"""Our decisions beside kube-scheduler's: a table a plugin, and the first that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.plugins.registry import IN_TREE

Json = Mapping[str, Any]
SHOWN = 2
"""Differing cases that are printed."""


@dataclass
class Comparisons:
    """Agreements and differences by plugin."""

    agree: Counter[str] = field(default_factory=Counter)
    differ: Counter[str] = field(default_factory=Counter)
    unbuilt: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    first: list[str] = field(default_factory=list)

    def compare(self, where: str, cluster: dict[str, Any], answers: list[dict[str, Any]]) -> None:
        """Take in all decisions about a cluster; its `result` is kube-scheduler's."""
        for ours, theirs in zip(answers, cluster["result"], strict=True):
            assert ours["pod"] == theirs["pod"]
            self.decisions += 1
            _Comparison(self, f"{where} {theirs['pod']}", cluster, ours, theirs).run()

    def table(self) -> str:
        """A row a plugin."""
        lines = [f"{'plugin':<40}{'agree':>8}{'differ':>8}"]
        plugins = sorted(self.agree.keys() | self.differ.keys())
        lines += [f"{plugin:<40}{self.agree[plugin]:>8}{self.differ[plugin]:>8}" for plugin in plugins]
        return "\n".join(lines)

    def report(self) -> str:
        """The table, and the first differences."""
        return "\n\n".join((self.table(), *self.first))


@dataclass
class _Comparison:
    """One decision."""

    counts: Comparisons
    where: str
    cluster: dict[str, Any]
    ours: Json
    theirs: Json

    def run(self) -> None:
        ours, theirs = self.ours, self.theirs
        if "preFilter" in theirs or "preFilter" in ours:
            mine, theirs_too = ours.get("preFilter"), theirs.get("preFilter")
            refused = theirs_too or mine
            assert refused is not None
            if refused["plugin"] in IN_TREE or mine is not None:
                self.note(refused["plugin"], None, _status(mine), _status(theirs_too))
            else:
                self.counts.unbuilt[refused["plugin"]] += 1
            return
        for node in (one["metadata"]["name"] for one in self.cluster["nodes"]):
            self.verdict(node)
        if ours["rejected"].keys() == theirs["rejected"].keys():
            self.scores()

    def verdict(self, node: str) -> None:
        refusal = self.theirs["rejected"].get(node)
        if refusal is not None and refusal["plugin"] not in IN_TREE:
            self.counts.unbuilt[refusal["plugin"]] += 1
            refusal = None
        mine = self.ours["rejected"].get(node)
        plugin = (refusal or mine or {"plugin": "(feasible)"})["plugin"]
        self.note(plugin, node, _status(mine), _status(refusal))

    def scores(self) -> None:
        """What is normalised over the feasible nodes can only be compared where they are the same."""
        for node, expected in self.theirs["scores"].items():
            mine = self.ours["scores"][node]
            for plugin in sorted(expected.keys() | mine.keys()):
                if plugin in IN_TREE:
                    self.note(f"{plugin} score", node, mine.get(plugin), expected.get(plugin))
                else:
                    self.counts.unbuilt[plugin] += 1
            if expected.keys() <= IN_TREE.keys():
                self.note("total", node, self.ours["total"][node], self.theirs["total"][node])

    def note(self, plugin: str, node: str | None, ours: object, theirs: object) -> None:
        if ours == theirs:
            self.counts.agree[plugin] += 1
            return
        self.counts.differ[plugin] += 1
        if len(self.counts.first) < SHOWN:
            place = f" on {node}" if node else ""
            told = f"{self.where}{place}: {plugin}: ours {ours}, kube-scheduler's {theirs}"
            self.counts.first.append(told)


def _status(refusal: Json | None) -> tuple[str, str, tuple[str, ...]] | None:
    if refusal is None:
        return None
    return refusal["plugin"], refusal["code"], tuple(sorted(refusal["reasons"]))
