"""Worlds as recordings: they play to the same again, and what fails is cut down to what still fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from policyengine.framework.changes import NO_ROWS, Changes
from policyengine.framework.events import ActionType, ClusterEvent, Resource
from policyengine.recording.replay import Replay
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.state import SchedulerState
from tests.faults import mixed, recorded
from tests.faults.flapping import FIRST_SEED
from tests.faults.world import World
from tests.scheduler import invariants


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    yield


def found(world: World) -> dict[Path, str]:
    """The recordings that a failure names, and what it says of each."""
    return {Path(path): said for path, said in re.findall(r"^(/\S+\.recording): (.*)$", world.timeline(), re.MULTILINE)}


@pytest.mark.parametrize("seed", [3, 7, mixed.NEWEST + 1, mixed.RESTORED + 10, mixed.RESTORED + 18, FIRST_SEED + 2])
def test_what_the_cores_of_a_world_were_told_plays_to_the_same_and_shows_no_fault(seed: int) -> None:
    objections, world = mixed.play_seed(seed)
    assert not objections
    kept = found(world)
    assert len(kept) == len(world.recorders)
    for path, said in kept.items():
        assert said.endswith("the core does right by what it was told"), said
        replay = Replay(path)
        replay.play()
        assert replay.difference is None and replay.exact and not replay.notes
    assert sum(len(replica.log) for replica in world.replicas) > 20


def no_wake_up_by_taints(patch: pytest.MonkeyPatch) -> None:
    move = SchedulingQueue.move

    def moved(self: SchedulingQueue, event: ClusterEvent, *objects: Any, **how: Any) -> None:
        if (event.resource, event.action) != (Resource.NODE, ActionType.UPDATE_NODE_TAINT):
            move(self, event, *objects, **how)

    patch.setattr(SchedulingQueue, "move", moved)


def rows_never_computed_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Changes, "nodes_since", lambda self, position: NO_ROWS)
    patch.setattr(Changes, "since", lambda self, nodes, pods: NO_ROWS)


def three_pods_at_most(patch: pytest.MonkeyPatch) -> None:
    validate = invariants.validate

    def broken(self: SchedulerState) -> None:
        validate(self)
        assert len(self.view.pods) < 3, "too many pods"

    patch.setattr(invariants, "validate", broken)


@pytest.mark.parametrize(
    ("breaks", "seed", "shows", "most"),
    [
        (no_wake_up_by_taints, FIRST_SEED + 1, "I3: .* waits though it fits", 20),
        (rows_never_computed_again, 5, "I[29]: .* was sent to .*", 20),
        (three_pods_at_most, 2, r"it ends with AssertionError at test_recorded.py:\d+", 3),
    ],
)
def test_a_world_that_fails_leaves_a_small_recording_that_fails_until_the_fault_is_mended(
    breaks: Callable[[pytest.MonkeyPatch], None],
    seed: int,
    shows: str,
    most: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        breaks(patch)
        objections, world = mixed.play_seed(seed)
        assert objections
        path, said = next((path, said) for path, said in found(world).items() if re.search(f" messages; {shows}", said))
        left, told = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", said)[:2])
        assert left <= most < told
        assert recorded.main([str(path)]) == 1
        assert re.search(shows, capsys.readouterr().out)
    assert recorded.main([str(path)]) == 0
