"""The best row is found by what no row's total is above, as by looking at all totals."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework import kin
from policyengine.framework.ceilings import TRIES, best_below
from policyengine.framework.leaders import Ring
from policyengine.framework.ranking import next_of
from tests.framework.test_kin import run

AROUND = 2**64


def nearest(rows: list[int], hashes: list[int], pod_uid: str) -> int:
    """Of the rows the one that comes next on the ring after the pod's UID, by going through them all."""
    place = int.from_bytes(blake2b(pod_uid.encode(), digest_size=8).digest(), "big")
    return min(rows, key=lambda row: (hashes[row] - place) % AROUND)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((1, 2, 9, 300, 900)),
    spread=st.sampled_from((1, 3, 60)),
    looseness=st.sampled_from((0.0, 0.02, 0.3)),
)
def test_what_is_found_is_the_best_row_and_the_next_of_many(
    seed: int, count: int, spread: int, looseness: float
) -> None:
    rng = Random(seed)
    hashes = [rng.randrange(AROUND) for _ in range(count)]
    ring = Ring(np.array(hashes, dtype=np.uint64))
    totals = [rng.randrange(spread) for _ in range(count)]
    ceilings = [total + (rng.randint(1, 3) if rng.random() < looseness else 0) for total in totals]
    best = [row for row in range(count) if totals[row] == max(totals)]
    wanted = nearest(best, hashes, "pod")
    tied = np.array([total == max(totals) for total in totals])
    assert next_of(tied, ring, "pod") == wanted
    looked_at: list[int] = []

    def total_at(row: int) -> int:
        looked_at.append(row)
        return totals[row]

    found = best_below(np.array(ceilings, dtype=np.int16), total_at, ring, "pod")
    too_high = sum(ceiling > total and ceiling >= max(totals) for ceiling, total in zip(ceilings, totals, strict=True))
    assert found == wanted if found is not None else too_high >= TRIES
    assert len(looked_at) <= TRIES


def test_kin_are_placed_by_ceilings_and_seldom_without(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int | None] = []

    def noted(*parts: object) -> int | None:
        found.append(best_below(*parts))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(kin, "best_below", noted)
    for seed in range(6):
        run(seed)
    assert len(found) > 80
    assert found.count(None) < len(found) // 10
