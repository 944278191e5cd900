"""Our decisions are kube-scheduler's: it decides in random clusters on a real API server, we in the same.

`python -m tests.exact.soak N K` plays N worlds from seed K on.

Needs etcd, kube-apiserver and kube-scheduler in `$KUBEBUILDER_ASSETS`.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.exact.play import play
from tests.exact.real import real

SEEDS = (1050, 1072, 0, 1, 3, 4, 22)
"""Between them: every theme, and preemption."""
SECONDS = 45.0
"""No world is begun after them."""


async def test_kube_scheduler_decides_as_we_do(tmp_path: Path) -> None:
    deadline, comparisons = time.monotonic() + SECONDS, []
    async with real(tmp_path) as at:
        for seed in SEEDS:
            comparisons.append(await play(at, seed))
            await at.empty()
            if time.monotonic() > deadline:
                break
    differences = [f"seed {comparison.seed}: {one}" for comparison in comparisons for one in comparison.differences]
    assert not differences, "\n".join(differences)
    assert sum(comparison.bound for comparison in comparisons) > 0
    assert sum(comparison.refused for comparison in comparisons) > 0
    assert sum(comparison.scores for comparison in comparisons) > 0
    print(f"\n{len(comparisons)} worlds: {sum(comparison.scores for comparison in comparisons)} scores alike")
