"""Hours of pods that come, run and go, with a fault now and then: what the process keeps must not grow with the time.

`python -m tests.faults.churn HOURS` prints what is kept after every hour.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random

from tests.faults.world import Replica, World, play
from tests.faulty_server import effects

PODS_AT_ONCE = 12
EVERY = 30.0
"""Seconds between two pods."""


def kept(replica: Replica) -> dict[str, int]:
    """How much the process holds on to, by what; bounded caches and timelines by size aside."""
    state, runner = replica.state, replica.scheduler.runner
    view = state.view
    return {
        "pods": len(view.pods),
        "nodes": view.nodes.n,
        "orphans": sum(map(len, view.orphans.values())),
        "nominated": sum(map(len, view.nominated.values())),
        "bindings": state.bindings_under_way,
        "queued": sum(sum(state.pending_counts(profile.scheduler_name).values()) for profile in state.profiles),
        "writes": runner.writer.queue.backlog,
        "known": len(runner.informers.pods.store),
        "reads": runner.writer._under_way["read"],
        "messages": len(runner.messages.waiting),
        "tasks": len(asyncio.all_tasks()),
    }


async def churn(world: World, hours: int) -> list[dict[str, int]]:
    """What is kept after each hour."""
    random, found, names = Random(world.seed), [], []
    for number in range(3):
        await world.node(f"n{number}", "4")
    replica = world.start()
    for number in range(int(hours * 3600 / EVERY)):
        name = f"p{number}"
        await world.pod(name, random.choice(("500m", "1", "2")))
        names.append(name)
        if len(names) > PODS_AT_ONCE:
            await world.delete(names.pop(random.randrange(len(names))))
        if random.random() < 0.05:
            effect = random.choice((effects.Cut(), effects.Duplicate(), effects.Garble(), effects.Expire()))
            world.faults.add(effect, verb="watch", resource="pods", client="scheduler", seconds=60.0)
        await asyncio.sleep(EVERY)
        replica.log.clear()
        replica.recorder.take()
        world.tape.clear()
        if (number + 1) % int(3600 / EVERY) == 0:
            world.faults.clear()
            await asyncio.sleep(1)
            found.append(kept(replica))
    assert not replica.why_ended(), replica.why_ended()
    return found


def hours_of(hours: int) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []

    async def scene(world: World) -> None:
        found.extend(await churn(world, hours))

    play(scene, validates=False)
    return found


def main() -> int:
    found = hours_of(int(sys.argv[1]))
    for hour, counts in enumerate(found, start=1):
        print(hour, counts)
    grown = [what for what in found[0] if max(one[what] for one in found) > bound(what, found[0])]
    print(f"grown: {grown}" if grown else "nothing has grown")
    return int(bool(grown))


def bound(what: str, first: dict[str, int]) -> int:
    """What is kept at most: of pods those that are there, of everything else what the first hour needed."""
    by_pods = {"pods", "queued", "known"}
    return PODS_AT_ONCE + 1 if what in by_pods else first[what] + PODS_AT_ONCE


if __name__ == "__main__":
    sys.exit(main())
