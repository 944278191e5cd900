"""Everything that listens answers the requests it starts from, and damaged ones, without an error of its own."""

from __future__ import annotations

import pytest

from tests.fuzz.guided import MODULES, in_time
from tests.fuzz.listeners import LISTENERS, target

DAMAGED = 40


@pytest.mark.parametrize("name", LISTENERS)
def test_whole_and_damaged_requests_are_answered_or_refused(name: str) -> None:
    with target(name) as listener:
        assert listener.damage is not None
        for seed in listener.seeds:
            listener.take(seed)
        for number in range(DAMAGED):
            in_time(listener.take, listener.damage(listener.seeds[number % len(listener.seeds)], number))


def test_every_listener_is_fuzzed() -> None:
    assert {name for name, module in MODULES.items() if module == "listeners"} == set(LISTENERS)
