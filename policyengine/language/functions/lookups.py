"""`history` and `podGroup(name)`: what is looked up in the cluster.

A policy writes `history(key)` or `history(key, smoothing)`. The checker adds what the answer depends on, as for
`random`: the histories or PodGroups there are, which only the compiler knows (what is asked of them stands here), and
the labels or the namespace of the pod being placed. The variable `podGroup` is another thing: functions and variables
have names of their own, as in CEL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from policyengine.language.functions.answer_bounds import Unbounded
from policyengine.language.functions.table import Cost, Function, Style, function
from policyengine.language.values import EvaluationError


class PlacedPods(Protocol):
    """Remembers what the pods that were placed asked for."""

    def of(self, labels: Mapping[str, str], label: str, smoothing: float) -> object:
        """The history of those with the same value of a label; of all, where the label is empty."""


def _history(placed: PlacedPods, labels: Mapping[str, str], label: str, smoothing: float) -> object:
    if not 0 <= smoothing <= 1:
        raise EvaluationError(f"a smoothing is from 0 to 1, not {smoothing}")
    return placed.of(labels, label, smoothing)


class Groups(Protocol):
    """The PodGroups that there are."""

    def named(self, namespace: str, name: str) -> object | None:
        """The one of that name, None without one."""


def _pod_group(groups: Groups, namespace: str, name: str) -> object | None:
    return groups.named(namespace, name)


FUNCTIONS: tuple[Function, ...] = (
    function(
        "history",
        Style.GLOBAL,
        'what pods with the same value of a label asked for, those that are gone too; `history("")`: all pods',
        {"history, map(string, string), string, double -> history": _history},
        bounds=Unbounded("an object"),
        cost=Cost("lookup", 20),
        added=2,
    ),
    function(
        "podGroup",
        Style.GLOBAL,
        "the PodGroup of that name in the pod's namespace, none where there is no such object",
        {"podGroup, string, string -> optional(podGroup)": _pod_group},
        bounds=Unbounded("an object"),
        cost=Cost("lookup", 20),
        added=2,
    ),
)
