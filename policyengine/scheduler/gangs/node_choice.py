"""Which nodes are reserved for a refused gang until they have drained.

Rules:
1. Nodes are taken in the order in which they are likely to drain: those whose pods all have a known end, the soonest
   first; then those with the fewest pods that have none; then by name. As few are taken from the front of that order
   as will do. DaemonSets' pods and static pods never drain.
2. The gang is placed on the cluster as it will be then, scored by its policy; no other pod is in its way.
3. The choice stands while the gang fits there once the nodes are drained; it is checked again at each refusal.
4. A gang that would not fit on the whole cluster, drained, reserves nothing, and is not tried again before nodes or
   members change.

Example: a gang of two that need a node each. n1 drains at 500 s, n2 at 200 s, n3 runs a pod without an end. The order
is n2, n1, n3; one node does not suffice, two do: n2 and n1 are reserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from policyengine.cluster.pod_info import PodInfo
from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs.gang_draft import Attempt, Draft
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queueing_hints import RESERVED_ROOM
from policyengine.scheduler.reserved_room import ReservedRoom, ends

Places = dict[str, list["PodInfo"]]
"""Node -> the members that are to stand there."""


def reserve_for(attempt: Attempt) -> None:
    """The gang was refused: reserve room for those needed, if it asks for that and fits once pods have gone."""
    core, gang, members, count = attempt.core, attempt.gang, attempt.members, attempt.count
    room = core.reserved_room
    if gang.refused_since is None:
        gang.refused_since = core.now
    if gang.waits is None or len(members) < count or (room is not None and room.gang is not gang):
        return
    tried = (core.view.nodes.node_journal.position, count, *(queued.uid for queued in members))
    if gang.unplaceable == tried:
        return
    core.reserved_room = None  # the gang itself may use it
    places = _places(attempt, list(room.members_on)) if room is not None else None
    if places is None:
        places = _choose(attempt)
    if places is None:
        gang.unplaceable = tried
        if room is not None:
            end(core)
        return
    priority = max(queued.pod.priority for queued in members)
    core.reserved_room = ReservedRoom(gang, attempt.served, gang.refused_since + gang.waits, places, priority)
    if room is None:
        for queued in members:
            core.timeline.record(queued.uid, core.now, "room kept", ", ".join(sorted(places)))
    elif places.keys() != room.members_on.keys():
        _requeue_refused(core)


def placed(core: Core, gang: Gang) -> None:
    """The gang has what it waited for."""
    if core.reserved_room is not None and core.reserved_room.gang is gang:
        end(core)


def review(core: Core, room: ReservedRoom) -> None:
    """Give the room up if the gang is gone, or is another one."""
    if not room.is_due():
        end(core)


def end(core: Core) -> None:
    """The room is free for all again."""
    core.reserved_room = None
    _requeue_refused(core)


def _requeue_refused(core: Core) -> None:
    for served in core.profiles.values():
        refused = [one for index in served.queue.indices for one in index.refused_by(RESERVED_ROOM)]
        served.queue.try_again(refused, core.now, "RoomGivenUp", RESERVED_ROOM)


def _choose(attempt: Attempt) -> Places | None:
    """The members' places when as few nodes as will do have drained; None if the gang fits not even on all."""
    order = _by_draining(attempt.core)
    least, most = 0, 1
    places = None
    while places is None:  # twice as many each time, then halves: few tries if few nodes will do
        most = min(most, len(order))
        places = _places(attempt, order[:most])
        if places is None:
            if most == len(order):
                return None
            least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        found = _places(attempt, order[:middle])
        if found is None:
            least = middle
        else:
            most, places = middle, found
    return places


def _places(attempt: Attempt, drained: Sequence[str]) -> Places | None:
    """The members' places once these nodes have drained; None if there are not enough."""
    for place in (Draft.fill, Draft.pack):
        draft = Draft(attempt)
        try:
            draft.without(pod.uid for name in drained for pod in _draining(attempt.core, name))
            if place(draft):
                places: Places = {}
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
    """Rule 1."""
    keys: list[tuple[int, float, str, str]] = []
    for name in core.view.nodes.row_of:
        pods = _draining(core, name)
        known = [gone for pod in pods if (gone := ends(pod, core.now)) < inf]
        keys.append((len(pods) - len(known), max(known, default=0.0), core.view.nodes.known_as(name), name))
    return [name for *_, name in sorted(keys)]
