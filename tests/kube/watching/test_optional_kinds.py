"""A kind that a server need not serve: absent it is no error, and it is found once it is there."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.http.client import Client
from policyengine.kube.watching.reflector import ABSENT_FOR, Reflector
from policyengine.kube.watching.store import Change, Deleted
from tests.kube.scripted_server import ScriptedServer, config_map, failure, listed, watched
from tests.kube.virtual_time import VirtualClock, run

OPTIONAL = replace(CONFIG_MAPS, is_optional=True)


def follow(seconds: float, *script: Any) -> tuple[list[str], bool, list[str]]:
    """What was seen, whether the kind counts as listed, and what was complained of."""
    seen: list[str] = []
    problems: list[str] = []

    def note(change: Change[ConfigMap]) -> None:
        seen.append(f"-{change.name}" if isinstance(change, Deleted) else change.object.metadata.name)

    async def session() -> bool:
        clock = VirtualClock()
        reflector = Reflector(
            Client(ScriptedServer(*script)), OPTIONAL, clock, random.Random(1), on_problem=problems.append
        )
        try:
            async with asyncio.timeout(seconds):
                async for change in reflector.changes():
                    note(change)
        except TimeoutError:
            pass
        return reflector.synced.is_set()

    return seen, run(session()), problems


def test_a_kind_the_server_does_not_serve_counts_as_listed_and_is_nobodys_problem() -> None:
    assert follow(ABSENT_FOR / 2, failure(404, "NotFound")) == ([], True, [])


def test_it_is_asked_for_again_and_found_when_it_is_served() -> None:
    seen, synced, _ = follow(ABSENT_FOR * 1.5, failure(404, "NotFound"), listed(5, config_map("a", 3)), watched())
    assert (seen, synced) == (["a"], True)


def test_when_it_is_served_no_more_its_objects_are_gone() -> None:
    seen, _, _ = follow(
        ABSENT_FOR / 2, listed(5, config_map("a", 3)), failure(404, "NotFound"), failure(404, "NotFound")
    )
    assert seen == ["a", "-a"]
