"""kube-scheduler's DefaultNormalizeScore: the largest raw score becomes 100, the others in proportion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.plugin import MAX_NODE_SCORE, Scores


def default_normalize(scores: NDArray[Any], reverse: bool = False) -> Scores:
    """100·s/max in integers, or 100 minus that; if max is 0, all get 0, or 100. `scores` are never negative.

    Worked example: 1, 2, 4 become 25, 50, 100, or in reverse 75, 50, 0.
    """
    raw: NDArray[np.int64] = scores.astype(np.int64, copy=False)
    maximum = max(0, int(raw.max()))
    if maximum == 0:
        return np.full(len(raw), MAX_NODE_SCORE if reverse else 0)
    share: Scores = raw * MAX_NODE_SCORE // maximum
    return MAX_NODE_SCORE - share if reverse else share
