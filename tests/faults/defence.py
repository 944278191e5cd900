"""A fault, the defence against it, and the test that holds them together.

    @fault(8, "I2", defence="…", taken_out="…", without=lambda patch: patch.setattr(…))
    async def test_08_…(world): …

plays the scene twice: with the defence every invariant holds; with the defence taken out, by a monkeypatch at the seam
that `without` names, the auditor objects to one of the invariants given. What stands here is also the table of
docs/reliability.md: `python -m tests.faults.table` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.auditor import INVARIANTS
from tests.faults.world import Play, play

Without = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    number: int
    breaks: str
    """Invariants of which the auditor objects to at least one, e.g. `I2 I3`."""
    defence: str
    taken_out: str
    test: str
    dies: str = ""
    """What a replica ends with where the defence is taken out; empty where all go on and are only observed."""


def fault(
    number: int,
    breaks: str,
    *,
    defence: str,
    taken_out: str,
    without: Without,
    dies: str = "",
    **how: Any,
) -> Callable[[Play], Any]:
    """Make a scene into a test of its fault; `how` are the world's arguments.

    A replica that ends by an error must not pass for one that broke an invariant: the error may be the patch's own.
    Where that it ends is the point, `dies` says by what.
    """
    assert set(breaks.split()) <= INVARIANTS

    def register(scene: Play) -> Any:
        @pytest.mark.parametrize("defended", [True, False], ids=["defended", "defence taken out"])
        def test(defended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
            if not defended:
                without(monkeypatch)
            objections, world = play(scene, validates=defended, **how)
            if defended:
                assert not objections, "\n".join([*objections, world.timeline()])
            else:
                for why in filter(None, (replica.why_ended() for replica in world.replicas)):
                    assert dies and why.startswith(dies), f"a replica ended by {why}, and was not evaluated"
                named = {objection.partition(":")[0] for objection in objections}
                assert named & set(breaks.split()), f"the auditor objects to {objections}\n{world.timeline()}"

        test.__name__ = test.__qualname__ = scene.__name__
        test.__module__ = scene.__module__
        test.row = Row(number, breaks, defence, taken_out, scene.__name__, dies)  # type: ignore[attr-defined]
        return test

    return register
