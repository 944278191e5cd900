"""Which of the nodes that could be cleared kube-scheduler may take, from its documented rules alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.exact.wording import name_of

Json = dict[str, Any]
_SHIFT = 2**31
_NOT_STARTED = "9"
"""Later than every moment: a pod without a start time counts as starting now."""


def least_harm(candidates: Json, pods: Iterable[Json]) -> set[str]:
    """The nodes than which none is better. `candidates` as `explain` gives them; empty where there are none."""
    standing = {name_of(one): one for one in pods}

    def worth(name: str) -> tuple[object, ...]:
        victims = [standing[key] for key in candidates[name]["victims"]]
        priorities = [one["spec"].get("priority", 0) for one in victims]
        total = sum(priority + _SHIFT for priority in priorities)
        first = min(
            one["status"].get("startTime", _NOT_STARTED)
            for one, priority in zip(victims, priorities, strict=True)
            if priority == max(priorities)
        )
        return -candidates[name]["pdbViolations"], -max(priorities), -total, -len(victims), first

    worths = {name: worth(name) for name in candidates}
    return {name for name in candidates if worths[name] == max(worths.values())}
