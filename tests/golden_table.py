"""Our decisions beside kube-scheduler's: a table a plugin, and the smallest input for the first that differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.diagnosis.explain import explain
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import IN_TREE
from tests.minimise import minimise
from tests.plugins import oracle, oracle_scores

Json = Mapping[str, Any]
SHOWN = 2
"""Differing cases that are minimised and printed."""


@dataclass(frozen=True)
class Difference:
    """One value of one decision that is not kube-scheduler's."""

    where: str
    plugin: str
    pod: str
    node: str | None
    """None: the pod as a whole."""
    part: str
    """`verdict`, `total`, or the plugin whose score it is."""
    ours: object
    theirs: object
    cluster: dict[str, Any] = field(compare=False, repr=False)


@dataclass
class UsageCounts:
    """Agreements and differences by plugin."""

    profile: Profile
    agree: Counter[str] = field(default_factory=Counter)
    differ: Counter[str] = field(default_factory=Counter)
    unbuilt: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    first: list[Difference] = field(default_factory=list)

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
        """The table, and the first differing cases in their smallest form."""
        return "\n\n".join((self.table(), *(describe(one, self.profile) for one in self.first)))


@dataclass
class _Comparison:
    """One decision."""

    counts: UsageCounts
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
                self.note(
                    refused["plugin"], None, "verdict", _status(ours.get("preFilter")), _status(theirs.get("preFilter"))
                )
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
        self.note(plugin, node, "verdict", _status(mine), _status(refusal))

    def scores(self) -> None:
        """What is normalised over the feasible nodes can only be compared where they are the same."""
        for node, expected in self.theirs["scores"].items():
            mine = self.ours["scores"][node]
            for plugin in sorted(expected.keys() | mine.keys()):
                if plugin in IN_TREE:
                    self.note(f"{plugin} score", node, plugin, mine.get(plugin), expected.get(plugin))
                else:
                    self.counts.unbuilt[plugin] += 1
            if expected.keys() <= IN_TREE.keys():
                self.note("total", node, "total", self.ours["total"][node], self.theirs["total"][node])

    def note(self, plugin: str, node: str | None, part: str, ours: object, theirs: object) -> None:
        if ours == theirs:
            self.counts.agree[plugin] += 1
            return
        self.counts.differ[plugin] += 1
        if len(self.counts.first) < SHOWN:
            known = (self.where, plugin, self.theirs["pod"], node, part, ours, theirs, self.cluster)
            self.counts.first.append(Difference(*known))


def _status(refusal: Json | None) -> tuple[str, str, tuple[str, ...]] | None:
    if refusal is None:
        return None
    return refusal["plugin"], refusal["code"], tuple(sorted(refusal["reasons"]))


def describe(difference: Difference, profile: Profile) -> str:
    """The difference, and the smallest input that shows it."""
    smallest = smallest_case(difference, profile)
    place = f" on {difference.node}" if difference.node else ""
    told = (
        f"{difference.where}{place}: {difference.plugin}: ours {difference.ours}, kube-scheduler's {difference.theirs}"
    )
    return f"{told}\nsmallest input that shows it:\n{json.dumps(smallest, indent=1)}"


def smallest_case(difference: Difference, profile: Profile) -> dict[str, Any]:
    """The input with everything taken out that does not matter.

    What kube-scheduler would say of a smaller input is not recorded. Where the oracle agrees with it on the whole
    input, the oracle speaks for it; elsewhere our answer must stay the wrong one it is.
    """
    case = {name: value for name, value in difference.cluster.items() if name not in ("seed", "result")}
    case["pending"] = [pod for pod in case["pending"] if _key(pod) == difference.pod]

    def ours(smaller: dict[str, Any]) -> object:
        (answer,) = explain(smaller, profile)
        if answer["pod"] != difference.pod or (difference.node and difference.node not in _names(smaller)):
            raise LookupError("the pod or the node in question has gone")
        return _value(difference, answer)

    theirs = _by_oracle(difference)
    if _agrees(theirs, case, difference.theirs):
        return minimise(case, lambda smaller: ours(smaller) != theirs(smaller))
    return minimise(case, lambda smaller: ours(smaller) == difference.ours)


def _value(difference: Difference, answer: Json) -> object:
    if difference.node is None:
        return _status(answer.get("preFilter"))
    if difference.part == "verdict":
        return _status(answer["rejected"].get(difference.node))
    if difference.part == "total":
        return answer["total"].get(difference.node)
    return answer["scores"].get(difference.node, {}).get(difference.part)


def _by_oracle(difference: Difference) -> Callable[[dict[str, Any]], object]:
    def theirs(smaller: dict[str, Any]) -> object:
        filled: dict[str, Any] = {"nodes": [], "pods": [], "namespaces": []} | smaller
        cluster, (pod,) = oracle.Cluster(filled), filled["pending"]
        refusals = oracle.refusals(cluster, pod)
        if difference.node is None:
            return None
        if difference.part == "verdict":
            return refusals[difference.node]
        scores = oracle_scores.scores(cluster, pod, [name for name, refusal in refusals.items() if refusal is None])
        shares = scores.get(difference.node, {})
        return sum(shares.values()) if difference.part == "total" else shares.get(difference.part)

    return theirs


def _agrees(theirs: Callable[[dict[str, Any]], object], case: dict[str, Any], expected: object) -> bool:
    try:
        return theirs(case) == expected
    except Exception:
        return False  # the oracle knows no volumes, and some other things the files hold


def _key(pod: Json) -> str:
    return f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"


def _names(cluster: Json) -> set[str]:
    return {node["metadata"]["name"] for node in cluster["nodes"]}
