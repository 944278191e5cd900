"""Device worlds with what a live kube-scheduler did there, one a line of JSON: `{seed, themes, objects, facts}`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from tests.exact.devices.device_world import DeviceWorld
from tests.exact.devices.live import Fact

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")


def append(path: Path, world: DeviceWorld, facts: list[Fact]) -> None:
    """One world more."""
    line = {"seed": world.seed, "themes": sorted(world.themes), "objects": world.objects, "facts": facts}
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line, separators=(",", ":")) + "\n")


def recorded() -> Iterator[tuple[DeviceWorld, list[Fact]]]:
    """What is kept beside this file: `gzip -9n` of some lines."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            world = json.loads(line)
            yield DeviceWorld(world["seed"], frozenset(world["themes"]), world["objects"]), world["facts"]
