"""`history`: what pods that were placed asked for.

A policy writes `history(key)` or `history(key, smoothing)`. The checker adds what the answer depends on, as for
`random`: the histories there are, and the labels of the pod being placed. The histories are a value of the cluster that
only the compiler knows; what is asked of it stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from policyengine.language.functions.bounds import Unbounded
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


FUNCTIONS: tuple[Function, ...] = (
    function(
        "history",
        Style.GLOBAL,
        'what pods with the same value of a label asked for, those that are gone too; `history("")`: all pods',
        {"history, map(string, string), string, double -> history": _history},
        bounds=Unbounded("an object"),
        cost=Cost("lookup", 20),
        mutants=[],
        added=2,
    ),
)
