"""Random worlds, audited at every moment: gangs, quotas, preemption and permits under drains, failures, new policies.

`POLICYENGINE_SEEDS=5000` plays so many instead of the few that fit into every run of the tests.
"""

from __future__ import annotations

import os

import pytest

from tests.trials.worlds import play

SEEDS = int(os.environ.get("POLICYENGINE_SEEDS", "30"))
STRIDE = 10


@pytest.mark.parametrize("first", range(0, SEEDS, STRIDE))
def test_no_invariant_breaks_without_permits(first: int) -> None:
    bindings = 0
    for seed in range(first, first + STRIDE):
        simulation, auditor = play(seed, permits=False)
        state = simulation.play.trial.state
        could_run = [uid for uid in auditor.forgotten() if state.place(uid) == "unschedulable"]
        forgotten = [simulation.play.ledger.pods[uid] for uid in could_run]
        assert not forgotten, f"I3: in world {seed} {forgotten} could run"
        bindings += auditor.bindings
    assert bindings > 5 * STRIDE


@pytest.mark.parametrize("first", range(0, SEEDS, STRIDE))
def test_no_invariant_breaks_with_permits(first: int) -> None:
    bindings = 0
    for seed in range(first, first + STRIDE):
        _, auditor = play(seed, permits=True)
        bindings += auditor.bindings
    assert bindings > 5 * STRIDE
