"""A cached answer equals a fresh one, whatever happened in between: random histories of a cluster."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import IN_TREE, default_profile
from tests.framework.random_history import World

STEPS = 30
SEEDS, LONG = 2, 300
"""Long histories, and steps in each."""
EVALUATING = sorted(
    name
    for name, entry in IN_TREE.items()
    if (entry.filters or entry.default_weight is not None) and name != "NodeName"
)
"""All but NodeName, which has nothing to say of a pod that waits."""


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), columns=st.sampled_from((2, 128)))
def test_a_cached_answer_equals_a_fresh_one_over_any_history(seed: int, columns: int) -> None:
    world = World(Random(seed), columns)
    for _ in range(STEPS):
        world.step()
        if world.rng.random() < 0.4:
            world.check()
    world.check()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_plugins_columns_follow_a_long_history(seed: int) -> None:
    world, held = World(Random(seed), 128), Counter[str]()
    for number in range(LONG):
        world.step()
        if number % 10 == 0:
            fresh = Evaluator(default_profile())
            world.compare_decision(fresh)
        world.compare(fresh, held)
    print(f"\nof {LONG} steps, answers held against fresh ones:")
    for name in EVALUATING:
        print(f"{name:32}{held[name]:7}")
        assert held[name] >= LONG, name


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_a_hypothetical_leaves_no_trace_in_the_columns(seed: int) -> None:
    world = World(Random(seed), 128)
    world.check()
    bound = [uid for uid, pod in world.pods.items() if pod["spec"].get("nodeName")]
    with world.view.hypothetically(remove=bound[:4]) as snapshot:
        for uid in world.pending():
            world.evaluator.filter(world.view.pods[uid], snapshot)
    world.check()
