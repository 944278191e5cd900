"""The smallest changes after which a refused pod would fit: part of `policyengine explain`. Pure.

Every suggestion was tried: the profile evaluated the changed input and let some node pass. Changes are sought one at a
time, then in twos and threes; as soon as some number of them helps, larger sets are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.diagnosis.remedies import remedies
from policyengine.diagnosis.what_if import Attempt, WhatIf
from policyengine.framework.evaluator import Evaluator

DEPTH: Final = 3
"""Rounds of changes; a round may change several requests at once."""
BREADTH: Final = 12
"""Sets of changes that are carried into the next round."""
SHOWN: Final = 4
"""Suggestions made for a pod."""


def suggest(evaluator: Evaluator, pod: PodInfo, view: ClusterView) -> list[dict[str, Any]]:
    """`[{change, changes: [{kind, …}], fits, chosen}]`, the smallest first; empty where the pod fits already, where
    its spec is malformed, and where nothing of what was tried helps.

    `fits` is the number of nodes that would fit, `chosen` the one that would be taken. The view is unchanged after.
    """
    what_if = WhatIf(view, evaluator)
    start = Attempt(pod)
    if pod.problem is not None or what_if.placement(start) is not None:
        return []
    front = [start]
    seen: set[frozenset[tuple[str, str, str]]] = set()
    for _ in range(DEPTH):
        tried = [option for attempt in front for option in remedies(attempt, what_if, what_if.filter(attempt))]
        new = list(_unseen(tried, seen))
        helpful = [(option, placed) for option in new if (placed := what_if.placement(option)) is not None]
        if helpful:
            return [_entry(option, *placed) for option, placed in _best(helpful)]
        front = sorted(new, key=lambda option: option.cost)[:BREADTH]
    return []


def _unseen(tried: Iterable[Attempt], seen: set[frozenset[tuple[str, str, str]]]) -> Iterable[Attempt]:
    """Each set of changes once, in whatever order they were made."""
    for option in tried:
        key = frozenset((change.kind, change.subject, change.text) for change in option.changes)
        if option.changes and key not in seen:
            seen.add(key)
            yield option


def _best(helpful: list[tuple[Attempt, tuple[str, int]]]) -> list[tuple[Attempt, tuple[str, int]]]:
    """The smallest of each sort, few of them."""
    chosen: dict[frozenset[tuple[str, str]], tuple[Attempt, tuple[str, int]]] = {}
    for option, placed in sorted(helpful, key=lambda one: (one[0].cost, -one[1][1])):
        sort = frozenset((change.kind, change.subject) for change in option.changes)
        if not any(known <= sort for known in chosen):
            chosen[sort] = (option, placed)
    return list(chosen.values())[:SHOWN]


def _entry(option: Attempt, chosen: str, fits: int) -> dict[str, Any]:
    return {
        "change": ", and ".join(change.text for change in option.changes),
        "changes": [{"kind": change.kind, **change.detail} for change in option.changes],
        "fits": fits,
        "chosen": chosen,
    }
