"""Which nodes a refused gang is to have, once they have drained: the choice behind `kept_room`.

Rules:
1. Nodes are taken in the order in which they are likely to drain: those whose pods all have a known end, the soonest
   first; then those with the fewest pods that have none; then by name. As few are taken from the front of that order
   as will do. DaemonSets' pods and static pods never drain.
2. The gang is placed on the cluster as it will be then, ranked as its policy says; nobody else is in its way.
3. The choice stands for as long as the gang fits there once they are drained; it is looked at again at each refusal.
4. A gang that would not fit on the whole cluster, drained, keeps nothing, and is not asked about again before nodes or
   members change.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs.gang import Gang
from policyengine.scheduler.gangs.gang_draft import Draft
from policyengine.scheduler.gangs.reserved_room import KeptRoom, end, ends, tell_the_refused
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queued_pod import QueuedPod

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def keep_for(core: Core, lane: Lane, gang: Gang, team: Sequence[QueuedPod], count: int) -> None:
    """The gang was refused: keep room for `count` more members, if it asks for that and fits once pods have gone."""
    kept = core.kept_room
    if gang.refused_since is None:
        gang.refused_since = core.now
    if gang.waits is None or len(team) < count or (kept is not None and kept.gang is not gang):
        return
    nodes = core.view.nodes
    tried = (nodes.node_journal.position, count, *(queued.uid for queued in team))
    if gang.hopeless == tried:
        return
    core.kept_room = None  # the gang may use what is kept for it
    places = _drained(core, lane, team, count, list(kept.places)) if kept is not None else None
    if places is None:
        places = _choose(core, lane, team, count)
    if places is None:
        gang.hopeless = tried
        if kept is not None:
            end(core)
        return
    priority = max(queued.pod.priority for queued in team)
    core.kept_room = KeptRoom(gang, lane, gang.refused_since + gang.waits, places, priority)
    if kept is None:
        for queued in team:
            core.story.tell(queued.uid, core.now, "room kept", ", ".join(sorted(places)))
    elif places.keys() != kept.places.keys():
        tell_the_refused(core)


def _choose(core: Core, lane: Lane, team: Sequence[QueuedPod], count: int) -> dict[str, list[PodInfo]] | None:
    """The members' places when as few nodes as will do have drained; None where the gang fits not even on all."""
    order = _by_draining(core)
    least, most = 0, 1
    places = None
    while places is None:  # twice as many each time, then halves: few tries where few nodes will do
        most = min(most, len(order))
        places = _drained(core, lane, team, count, order[:most])
        if places is None:
            if most == len(order):
                return None
            least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        found = _drained(core, lane, team, count, order[:middle])
        if found is None:
            least = middle
        else:
            most, places = middle, found
    return places


def _drained(
    core: Core, lane: Lane, team: Sequence[QueuedPod], count: int, drained: Sequence[str]
) -> dict[str, list[PodInfo]] | None:
    """The members' places once these nodes have drained; None where there are not enough."""
    for place in (Draft.fill, Draft.pack):
        draft = Draft(core, lane)
        try:
            draft.without(pod.uid for name in drained for pod in _draining(core, name))
            if place(draft, team, count):
                places: dict[str, list[PodInfo]] = {}
                for held in draft.held:
                    places.setdefault(held.node, []).append(held.queued.pod)
                return places
        finally:
            draft.undo()
    return None


def _draining(core: Core, node: str) -> list[PodInfo]:
    """The pods on the node that will go some day."""
    row = core.view.nodes.row_of.get(node)
    pods = () if row is None else core.view.nodes.pods_on(row).values()
    return [pod for pod in pods if pod.owner is None or pod.owner.kind not in ("DaemonSet", "Node")]


def _by_draining(core: Core) -> list[str]:
    keys: list[tuple[int, float, str]] = []
    for name in core.view.nodes.row_of:
        pods = _draining(core, name)
        known = [gone for pod in pods if (gone := ends(pod, core.now)) < inf]
        keys.append((len(pods) - len(known), max(known, default=0.0), name))
    return [name for *_, name in sorted(keys)]
