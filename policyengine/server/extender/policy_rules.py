"""A policy's own rules, asked as an extender is asked: about the nodes that kube-scheduler left, and nothing else.

Rules:
1. Only what kube-scheduler does not have counts: the policy's filter and score rules, its quotas, and the plugins of
   Python packages that it `use`s. The plugins in tree are kube-scheduler's business. Queue order, gangs, permits and
   preemption rules have no place in the protocol.
2. Score = Σ weight · score / (10 · Σ weight), rounded half away from zero, over the scores that have something to say
   of the pod; every node gets 0 where none has.
3. `normalize` looks at the nodes of the request, as it looks at the feasible nodes in the scheduler itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, repeat
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.compiler.rules.filter import RuleFilter
from policyengine.compiler.rules.score import RuleScore
from policyengine.control_characters import escaped
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.plugin import FilterPlugin, Reads, ScorePlugin
from policyengine.framework.profile import Profile
from policyengine.framework.status import Code, Status
from policyengine.kube.extenders.http_extender import MAX_SCORE
from policyengine.plugins.registry import IN_TREE

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot

_PERCENT = 100


class AskedNodes:
    """The nodes of a request: by their names, or as Node objects, which are handed back as they came."""

    def __init__(self, asked: Sequence[str] | Mapping[str, msgspec.Raw], nodes: NodeTable) -> None:
        self.names = list(asked)
        self.rows: NDArray[np.int64] = np.array(list(map(nodes.row_of.get, self.names, repeat(-1))), dtype=np.int64)
        """`int64[names]`: the row of each in the node table; -1 for an unknown node."""
        self._sent = asked.values() if isinstance(asked, Mapping) else None

    def kept(self, passing: NDArray[np.bool_]) -> dict[str, object]:
        """The nodes that passed, as a field of ExtenderFilterResult."""
        if self._sent is None:
            return {"NodeNames": list(compress(self.names, passing.tolist()))}
        return {"Nodes": {"metadata": {}, "items": list(compress(self._sent, passing.tolist()))}}


@dataclass(frozen=True, slots=True)
class Filtered:
    """Which nodes passed, of those asked about; why the others did not."""

    passing: NDArray[np.bool_]
    failed: dict[str, str] = field(default_factory=dict)
    """Refused for what an eviction could change."""
    unresolvable: dict[str, str] = field(default_factory=dict)

    def refuse(self, status: Status, names: Iterable[str]) -> None:
        """These did not pass."""
        kind = self.unresolvable if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else self.failed
        said = escaped(f"{status.plugin}: {status.message}" if status.plugin else status.message)
        kind |= dict.fromkeys(names, said)


@dataclass(frozen=True, slots=True)
class Ranked:
    """How nodes were rated: 0..10 each, `int64[names]`; a node that is not known gets 0."""

    scores: NDArray[np.int64]
    rules: dict[str, NDArray[np.int64]]
    """What each rule gives, 0..100, of those that have something to say of the pod."""


def own_rules(profile: Profile) -> Profile:
    """The profile with nothing but what kube-scheduler does not have: the policy's own filters, scores and quotas, and
    plugins of packages."""
    return replace(
        profile,
        pre_enqueue=(),
        filters=tuple(plugin for plugin in profile.filters if not _is_in_tree(plugin)),
        scores=tuple((plugin, weight) for plugin, weight in profile.scores if not _is_in_tree(plugin)),
        post_filters=(),
        reserve=(),
        permit=(),
        pre_bind=(),
        gangs=(),
    )


def _is_in_tree(plugin: FilterPlugin | ScorePlugin) -> bool:
    """Whether kube-scheduler has it; a rule may have the name of a plugin."""
    return not isinstance(plugin, RuleFilter | RuleScore) and plugin.name in IN_TREE


def reads_pods(profile: Profile) -> list[str]:
    """The names of the rules that read what stands on the nodes: without a watch they cannot be answered."""
    rules: list[FilterPlugin | ScorePlugin] = [*profile.filters, *(plugin for plugin, _ in profile.scores)]
    reading = [rule.name for rule in rules if rule.reads & Reads.PODS]
    return list(dict.fromkeys((*reading, *(quota.name for quota in profile.quotas.rules))))


class PolicyRules:
    """One policy's rules, with the columns they keep."""

    def __init__(self, profile: Profile) -> None:
        self.profile = own_rules(profile)
        self._evaluator = Evaluator(self.profile)

    def filter(self, pod: PodInfo, snapshot: Snapshot, asked: AskedNodes) -> Filtered:
        """Ask the filter rules about the nodes; one that is not in the snapshot is refused as unknown."""
        diagnosis = self._evaluator.filter(pod, snapshot)
        rows = asked.rows
        if diagnosis.pre_filter is not None:
            found = Filtered(np.zeros(len(rows), dtype=np.bool_))
            found.refuse(diagnosis.pre_filter, asked.names)
            return found
        feasible = np.zeros(snapshot.nodes.n + 1, dtype=np.bool_)
        feasible[diagnosis.feasible] = True
        passing = feasible[rows]
        found = Filtered(passing)
        if passing.all():
            return found
        refused = np.flatnonzero(~passing)
        unknown = refused[rows[refused] < 0]
        for name in map(asked.names.__getitem__, unknown.tolist()) if len(unknown) else ():
            found.failed[name] = f"node `{escaped(name)}` is not known to the extender"
        for status, group in diagnosis.refusals(rows[refused[rows[refused] >= 0]]):
            found.refuse(status, map(snapshot.nodes.names.__getitem__, group.tolist()))
        return found

    def prioritize(self, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.int64]) -> Ranked:
        """Rates each of the nodes; -1 is one that is not in the snapshot."""
        is_asked = np.zeros(snapshot.nodes.n + 1, dtype=np.bool_)
        is_asked[rows] = True
        ranked = np.flatnonzero(is_asked[:-1])
        node_scores = self._evaluator.score(pod, snapshot, Diagnosis(snapshot.nodes.names, ranked, (), None))
        weights = sum(share.weight for share in node_scores.shares)

        def of_asked(scores: NDArray[np.int64]) -> NDArray[np.int64]:
            by_row = np.zeros(snapshot.nodes.n + 1, dtype=np.int64)
            by_row[ranked] = scores
            asked: NDArray[np.int64] = by_row[rows]
            return asked

        whole = _PERCENT * weights
        scores = (2 * MAX_SCORE * node_scores.total + whole) // (2 * whole) if whole else np.zeros_like(ranked)
        return Ranked(of_asked(scores), {share.plugin: of_asked(share.scores) for share in node_scores.shares})

    def accepts(self, pod: PodInfo, snapshot: Snapshot, name: str) -> bool:
        """Whether the filter rules let the pod onto one node."""
        row = snapshot.nodes.row_of.get(name)
        return row is not None and self._evaluator.filter_node(pod, snapshot, row).is_success
