"""`history` and `podGroup(name)`: what is looked up in the cluster.

A policy writes `history(key)` or `history(key, smoothing)`. The checker adds what the answer depends on, as for
`random`: the histories or PodGroups there are, which only the compiler knows (what is asked of them stands here), and
the labels or the namespace of the pod being placed. The variable `podGroup` is another thing: functions and variables
have names of their own, as in CEL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyengine.language.functions.answer_bounds import Unbounded
from policyengine.language.functions.table import Cost, Function, Style, function
from policyengine.language.values import EvaluationError


def _history(placed: Any, labels: Mapping[str, str], label: str, smoothing: float) -> object:
    """The history of the pods with the same value of a label, of all where the label is empty. `placed`: what remembers
    the pods that were placed."""
    if not 0 <= smoothing <= 1:
        raise EvaluationError(f"a smoothing is from 0 to 1, not {smoothing}")
    return placed.of(labels, label, smoothing)


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
        {"podGroup, string, string -> optional(podGroup)": lambda held, namespace, name: held.named(namespace, name)},
        bounds=Unbounded("an object"),
        cost=Cost("lookup", 20),
        added=2,
    ),
)
