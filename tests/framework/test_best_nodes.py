"""The best nodes, kept while totals change, equal those worked out afresh."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.journal import stable_hash
from policyengine.framework.scoring import BestNodes, Ring


def naive(name_hash: np.ndarray, rows: np.ndarray, total: np.ndarray, uid: str) -> int:
    best = total[rows].max()
    tied = [int(row) for row in rows if total[row] == best]
    return min(tied, key=lambda row: ((int(name_hash[row]) - stable_hash(uid)) % 2**64, row))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_best_nodes_that_follow_single_totals_are_those_of_all_totals(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(1, 40)
    name_hash = np.array([stable_hash(f"node-{number}") for number in range(n)], dtype=np.uint64)
    total = np.array([rng.randint(0, 2) for _ in range(n)], dtype=np.int64)
    ring = Ring(name_hash)
    best = BestNodes(ring, total)
    for step in range(12):
        wanted = naive(name_hash, np.arange(n), total, f"pod-{step}")
        assert best.next(f"pod-{step}") == wanted
        assert ring.next_best(total, f"pod-{step}") == wanted
        highest = total.max()
        for row in rng.sample(range(n), min(n, rng.randint(1, 3))):
            total[row] = rng.randint(0, 3)
            best.put(row, total.item(row))
        if not best.count:
            assert total.max() < highest
            return
