"""Why the pods that were placed last stand where they stand: what was weighed at the moment of each decision.

Bounded in bytes: a record is counted with all that it may keep alive, and the oldest go first. One record a pod, its
last; it outlives the pod until others push it out. A decision that was given up later stays until there is another:
whoever reads it compares the node.

A decision by the in-tree plugins is counted with about 1,200 bytes, half of which it takes: 13,000 of them are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from policyengine.framework.scoring import Choice
    from policyengine.scheduler.queue.queued_pods import RoomMade

MOST_BYTES: Final = 16 << 20
"""What all records together may weigh."""
RECORD: Final = 1000
"""Bytes of a record without what follows: its tuples, its own numbers, UID, the policy's hash, the best nodes' names
but for their characters, and its entry in the table."""
NUMBER: Final = 40
SMALL: Final = 8
"""Bytes of a number and its place in a tuple: CPython keeps one object for each of -5 to 256."""
STRING: Final = 88
"""Bytes of a string without its characters, and of its place in a tuple."""
SET: Final = 216
"""Bytes of a set of four strings, without these."""
PAIR: Final = STRING + 104
"""Bytes of a (string, number), likewise."""


class Placement(NamedTuple):
    """One decision to give a pod a node."""

    at: float
    """Seconds since the epoch."""
    queued_at: float
    """When the pod was queued first; likewise."""
    attempt: int
    """Which attempt this was, from 1."""
    policy: str
    """Name of the policy that decided: the one that served, or a canary."""
    policy_hash: str
    choice: Choice
    room: RoomMade | None
    """The room that preemption made for it last, if it did."""
    tiers: frozenset[str] = frozenset()
    """Which of the scores are tiers."""


class RecentPlacements:
    """The last placement of each pod, of those placed last."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._by_pod: OrderedDict[str, tuple[int, Placement]] = OrderedDict()
        """UID -> (bytes, record)."""
        self._most = most_bytes
        self._uses: dict[int, list[int]] = {}
        """How many records have the shares of this identity, and what these weigh: many have the same."""
        self.bytes = 0
        """What the records weigh together, at most."""

    def __len__(self) -> int:
        return len(self._by_pod)

    def note(self, uid: str, placement: Placement) -> None:
        """The pod was placed."""
        before = self._by_pod.pop(uid, None)
        if before is not None:
            self._let_go(*before)
        size = _weight(placement)
        self._by_pod[uid] = size, placement
        self.bytes += size
        shares = placement.choice.shares
        uses = self._uses.get(id(shares))
        if uses is not None:
            uses[0] += 1
        else:
            weight = PAIR * len(shares) + 4 * sum([len(plugin) for plugin, _ in shares])
            self._uses[id(shares)] = [1, weight]
            self.bytes += weight
        while self.bytes > self._most:
            self._let_go(*self._by_pod.popitem(last=False)[1])

    def of(self, uid: str) -> Placement | None:
        """The pod's last placement, if it is among those kept."""
        kept = self._by_pod.get(uid)
        return None if kept is None else kept[1]

    def newest_first(self) -> Iterator[tuple[str, Placement]]:
        """(UID, record) of all that are kept."""
        return ((uid, placement) for uid, (_, placement) in reversed(self._by_pod.items()))

    def _let_go(self, size: int, placement: Placement) -> None:
        self.bytes -= size
        key = id(placement.choice.shares)
        uses = self._uses[key]
        uses[0] -= 1
        if not uses[0]:
            self.bytes -= uses[1]
            del self._uses[key]


def _weight(placement: Placement) -> int:
    """Bytes that the record keeps alive at most, but for its shares."""
    choice, room = placement.choice, placement.room
    scores, size = choice.scores, RECORD + len("".join(choice.best))
    if placement.tiers:
        size += SET + PAIR * len(placement.tiers)
    if scores:
        size += (SMALL if min(scores) >= -5 and max(scores) <= 256 else NUMBER) * len(scores)
    for plugin, _ in choice.refused:
        size += PAIR + 4 * len(plugin)
    if room is not None:
        size += PAIR + sum([STRING + 4 * len(one) for one in (room.node, room.why, *room.victims)])
    return size
