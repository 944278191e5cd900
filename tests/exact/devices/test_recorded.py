"""What a live kube-scheduler 1.36.2 did in 200 device worlds, played again: our core does the same, without a server.

`python -m tests.exact.devices.soak N K --record FILE` plays and records more of them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.exact.devices.compare import differences
from tests.exact.devices.device_world import THEMES, DeviceWorld
from tests.exact.devices.live import Fact
from tests.exact.devices.recording import recorded

PARTS = 10


@cache
def worlds() -> list[tuple[DeviceWorld, list[Fact]]]:
    return list(recorded())


@pytest.mark.parametrize("part", range(PARTS))
def test_our_core_does_what_kube_scheduler_did(part: int) -> None:
    for world, facts in worlds()[part::PARTS]:
        assert differences(world, facts) == [], f"seed {world.seed}"


def test_the_worlds_are_of_every_theme_and_devices_are_given_in_most() -> None:
    assert len(worlds()) == 200
    themes = Counter(theme for world, _ in worlds() for theme in world.themes)
    assert min(themes[theme] for theme in THEMES) >= 10
    given = [
        facts for _, facts in worlds() if any("allocation" in one for fact in facts for one in fact["claims"].values())
    ]
    assert len(given) > 100
    assert any(
        "deallocation of ResourceClaim completed" in text for _, facts in worlds() for f in facts for text in f["said"]
    )
    assert any("special" in fact for _, facts in worlds() for fact in facts)


def test_a_device_more_or_less_is_noticed() -> None:
    """Each world in which a device was given, with another device in the fact."""
    noticed = 0
    for world, facts in worlds()[:8]:
        for fact in facts:
            for status in fact["claims"].values():
                results = status.get("allocation", {}).get("devices", {}).get("results", [])
                if fact["node"] and results and fact["pod"]["metadata"]["name"] in status.get("reservedFor", ()):
                    wrong = [results[0] | {"device": "another"}, *results[1:]]
                    devices = status["allocation"]["devices"] | {"results": wrong}
                    changed = status | {"allocation": status["allocation"] | {"devices": devices}}
                    facts_then = [
                        one
                        | {"claims": {key: changed if item is status else item for key, item in one["claims"].items()}}
                        for one in facts
                    ]
                    assert differences(world, facts_then) != []
                    noticed += 1
    assert noticed > 3
