"""kube-scheduler's usual normalisation: the largest raw score becomes 100, the others in proportion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.plugin import MAX_NODE_SCORE, Scores


def largest(scores: NDArray[Any]) -> int:
    """The scale: the largest raw score, never below 0."""
    return max(0, int(scores.max()))


def proportional(scores: NDArray[Any], maximum: int, reverse: bool) -> Scores:
    """100·s/maximum in integers, or 100 minus that; where the maximum is 0 the scores stay 0, or become 100.

    `int64[len(scores)]`. `scores` must be non-negative; those above the maximum are answered as the maximum.
    """
    raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
    if maximum == 0:
        return np.full(len(raw), MAX_NODE_SCORE if reverse else 0, dtype=np.int64)
    share = np.minimum(raw, maximum) * MAX_NODE_SCORE // maximum
    return MAX_NODE_SCORE - share if reverse else share
