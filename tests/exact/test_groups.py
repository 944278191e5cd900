"""PodGroups of Kubernetes' own are decided about as by kube-scheduler with its gates on.

`python -m tests.exact.test_groups N K` plays N worlds of each kind from seed K on.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.alpha_gates import GROUPS, GROUPS_API, flag
from tests.exact.groups import play
from tests.exact.real import Real, real

WORLDS = 4


async def compare(at: Real, seed: int, constrained: bool) -> tuple[list[str], int, int]:
    """(differences, pods bound, victims)."""
    ours, theirs, nodes = await play(at, seed, constrained)
    await at.empty()
    alike: list[tuple[object, object]] = [(ours.victims, theirs.victims)]
    if not ours.victims or theirs.said[0] == "False":  # what is said while victims go may be over before it is seen
        alike += [(ours.said, theirs.said)]
    if constrained:
        alike += [(len(ours.nodes), len(theirs.nodes)), (ours.domains(nodes), theirs.domains(nodes))]
    where = f"seed {seed}, {'constrained' if constrained else 'preempting'}"
    found = [f"{where}: ours {one}, theirs {other}" for one, other in alike if one != other]
    return found, len(theirs.nodes), len(theirs.victims)


async def differences(folder: Path, first: int, count: int) -> tuple[list[str], int, int]:
    found: list[str] = []
    bound = victims = 0
    async with real(folder, [flag(GROUPS), GROUPS_API]) as at:
        for seed in range(first, first + count):
            for constrained in (True, False):
                more, placed, gone = await compare(at, seed, constrained)
                found, bound, victims = found + more, bound + placed, victims + gone
    return found, bound, victims


async def test_groups_are_placed_preempt_and_are_told_of_as_by_kube_scheduler(tmp_path: Path) -> None:
    found, bound, victims = await differences(tmp_path, 100, WORLDS)
    assert not found, "\n".join(found)
    assert bound > 0
    assert victims > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found, bound, victims = asyncio.run(differences(Path(folder), int(sys.argv[2]), int(sys.argv[1])))
    print("\n".join(found))
    print(f"{len(found)} differences, {bound} bound, {victims} victims")
