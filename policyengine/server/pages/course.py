"""How many pods waited and were bound over time, and how long they had waited: the pictures of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np

from policyengine.plan.history import PastPod
from policyengine.trials.ledger import PodRecord

Times = tuple[float, float | None, float | None]
"""When a pod came, was bound, and was gone; None where it was not."""
STRETCHES: Final = 150
"""Of equal length, into which the time is cut."""


def of_past(pods: Iterable[PastPod]) -> list[Times]:
    """Of pods as they were recorded."""
    return [(one.came, one.bound, one.deleted if one.finished is None else one.finished) for one in pods]


def of_played(pods: Iterable[PodRecord], start: float) -> list[Times]:
    """Of pods that were played anew; `start`: of the play, in seconds since the epoch."""
    return [
        (
            start + one.created,
            None if one.bound is None else start + one.bound,
            None if one.ended is None else start + one.ended,
        )
        for one in pods
    ]


def charts(pods: Iterable[Times], start: float, end: float) -> list[dict[str, Any]]:
    """What `charts.js` draws: pods, and seconds, at the end of each stretch or in it. Times are since the epoch."""
    told = list(pods)
    edges = np.linspace(start, max(end, start + 1e-3), STRETCHES + 1)
    came = np.sort([one[0] for one in told])
    left = np.sort([at for _, bound, gone in told if (at := gone if bound is None else bound) is not None])
    placed = sorted((bound, bound - came) for came, bound, _ in told if bound is not None and bound > came)
    bound, waited = np.array(placed, np.float64).reshape(-1, 2).T
    waiting = np.searchsorted(came, edges, "right") - np.searchsorted(left, edges, "right")
    cuts = np.searchsorted(bound, edges, "right")
    longest = [float(waited[a:b].max()) if b > a else 0.0 for a, b in pairwise(cuts)]
    shared = {"clock": True, "at": [round(float(at), 3) for at in edges]}
    each = f"bound, in each {edges[1] - edges[0]:.3g} s"
    return [
        {
            "title": "Pods over the recording",
            "lines": [
                {"name": "waiting", "values": waiting.tolist(), "variable": "--s6"},
                {"name": each, "values": [0, *np.diff(cuts).tolist()], "variable": "--s0", "dash": [6, 3]},
            ],
            **shared,
        },
        {
            "title": "The longest that a pod had waited which was bound then",
            "unit": " s",
            "lines": [{"name": "waited", "values": [0, *(round(one, 3) for one in longest)], "variable": "--s1"}],
            **shared,
        },
    ]
