"""A cluster in a file as a source: as it stands in the file, and what becomes of the pods that wait."""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import Fate, played
from policyengine.framework.profile import Profile
from policyengine.server.pages.source import Moment, StillSource


def dumped(
    where: str, objects: Sequence[DumpedObject], profiles: Sequence[Profile], notes: Sequence[str], now: float
) -> StillSource:
    """The cluster once the scheduler has tried all pods that wait in it (`forecast`)."""
    told, state = played(objects, profiles, now)
    placed = sum(one.what is Fate.BOUND for one in told.pods)
    said = [*notes]
    if told.pods:
        said.append(
            f"this is a file, in which {len(told.pods):,} pods wait: shown is what the scheduler would make of them; "
            f"{placed:,} of them get a node"
        )
    if told.evicted:
        said.append(f"{len(told.evicted):,} pods had to go for others")
    if not told.is_complete:
        said.append("the bound on the work was reached: not every pod was tried")
    return StillSource(where, Moment(state, now + told.seconds, where, None, notes=tuple(said)))
