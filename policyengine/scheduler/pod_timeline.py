"""What happened to each pod, and why it stands where it stands: for `explain --live` and for people who ask.

Bounded: the last `LINES` lines of a pod and its last placement, of the `PODS` pods that were told of, or placed, last.
They are fewer where their lines are more than `ALL_LINES` together, as those of pods that are refused again and again
(a third of a kilobyte each), or where placements hold more than `PARTS` numbers and names, as under a policy of many
scores. A line is kept as the values it was told with and is worded only when somebody reads it. Both outlive the pod
until others push them out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from policyengine.framework.scoring import Choice

LINES = 32
ALL_LINES = 100_000
PODS = 10_000
PARTS = 500_000


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened to a pod."""

    at: float
    """Seconds, on the clock `handle` is given."""
    what: str
    """`queued`, `attempted`, `refused`, `failed`, `woken`, `held`, `gated`, `reserved`, `bound`, `released`, …"""
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = ", ".join(f"{key} {_worded(value)}" for key, value in self.details.items() if value not in ("", ()))
        return f"{self.what}: {said}" if said else self.what


Observer = Callable[[str, float, str, tuple[Any, ...]], None]
"""(pod's UID, seconds, what happened, its details) -> nothing."""

_Told = tuple[float, str, tuple[Any, ...]]

_DETAILS: dict[str, tuple[str, ...]] = {
    "queued": ("place", "event"),
    "queued last": ("message",),
    "woken": ("place", "event", "asked by"),
    "attempted": ("attempt", "policy hash"),
    "refused": ("by", "policy hash", "message"),
    "failed": ("policy hash", "message"),
    "gated": ("by", "message"),
    "held": ("message",),
    "reserved": ("node", "policy hash"),
    "consulting": ("extenders",),
    "waiting": ("by", "seconds"),
    "preparing": ("by", "seconds"),
    "written": ("kind", "name"),
    "prepared": ("by",),
    "bound": ("node", "policy hash"),
    "not announced": ("by", "message"),
    "released": ("node", "reason"),
    "unknown": ("node", "message"),
    "observed": ("node",),
    "room kept": ("nodes",),
    "not revalidated": ("node", "message"),
    "gone": ("reason",),
    "preempting": ("node", "victims", "why"),
    "preempted": ("by", "node"),
    "not preempted": ("victim", "message"),
    "gives way": ("node", "message"),
    "unserved": ("scheduler name",),
}
"""What the values of a line mean, for each kind of line."""


class PodTimelines:
    """The histories of the pods that something happened to last."""

    def __init__(self, pods: int = PODS, lines: int = LINES, all_lines: int = ALL_LINES) -> None:
        self._by_pod: OrderedDict[str, list[_Told]] = OrderedDict()
        self._pods = pods
        self._lines = lines
        self._all_lines = all_lines
        self._kept = 0
        """How many lines there are of all pods."""
        self.listener: Callable[[str, TimelineEntry], None] | None = None
        """Called with (pod's UID, line) for each line, in the order told across all pods."""
        self.observer: Observer | None = None
        """Called likewise, with the line as it was told, and for every `mark`."""

    def record(self, uid: str, at: float, what: str, *values: Any) -> None:
        """Add a line; `values` are the details of `what`, in order, as `_DETAILS` names them."""
        told = self._by_pod.get(uid)
        if told is None:
            told = self._by_pod[uid] = []
            if len(self._by_pod) > self._pods:
                self._drop_oldest()
        else:
            self._by_pod.move_to_end(uid)  # a pod that waits for long is not the first to be forgotten
            if len(told) >= self._lines:
                del told[0]
                self._kept -= 1
        told.append((at, what, values))
        self._kept += 1
        if self._kept > self._all_lines:
            self._drop_oldest()
        if self.listener is not None:
            self.listener(uid, _line(told[-1]))
        if self.observer is not None:
            self.observer(uid, at, what, values)

    def _drop_oldest(self) -> None:
        self._kept -= len(self._by_pod.popitem(last=False)[1])

    def mark(self, uid: str, at: float, what: str, *values: Any) -> None:
        """Tell the observer how far an attempt has come; no line is kept."""
        if self.observer is not None:
            self.observer(uid, at, what, values)

    def of(self, uid: str) -> list[TimelineEntry]:
        """The pod's history, oldest line first; empty when nothing is known of it."""
        return [_line(told) for told in self._by_pod.get(uid, ())]

    def last_message(self, uid: str) -> str:
        """The last message that a line of the pod holds; empty where none does."""
        for _, what, values in reversed(self._by_pod.get(uid, ())):
            said = next(
                (one for name, one in zip(_DETAILS.get(what, ()), values, strict=False) if name == "message"), ""
            )
            if said:
                return str(said)
        return ""


class RoomMade(NamedTuple):
    """Room that preemption made for a pod."""

    node: str
    victims: tuple[str, ...]
    """`namespace/name` of each."""
    why: str
    """Why this node, and so these victims."""


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
    """The last placement of each pod, of those placed last. One that was given up later stays until there is another:
    whoever reads it compares the node."""

    def __init__(self, most: int = PODS, most_parts: int = PARTS) -> None:
        self._by_pod: OrderedDict[str, Placement] = OrderedDict()
        self._most = most
        self._most_parts = most_parts
        self._parts = 0

    def note(self, uid: str, placement: Placement) -> None:
        """The pod was placed."""
        before = self._by_pod.pop(uid, None)
        if before is not None:
            self._parts -= _parts(before)
        self._by_pod[uid] = placement
        self._parts += _parts(placement)
        while len(self._by_pod) > self._most or self._parts > self._most_parts:
            self._parts -= _parts(self._by_pod.popitem(last=False)[1])

    def of(self, uid: str) -> Placement | None:
        """The pod's last placement, if it is among those kept."""
        return self._by_pod.get(uid)

    def newest_first(self) -> Iterator[tuple[str, Placement]]:
        """(UID, placement) of all that are kept."""
        return reversed(self._by_pod.items())


def _parts(placement: Placement) -> int:
    """How many numbers and names it holds that another decision may have more of."""
    choice, room = placement.choice, placement.room
    return len(choice.scores) + len(choice.refused) + len(choice.best) + (0 if room is None else len(room.victims))


def _line(told: _Told) -> TimelineEntry:
    at, what, values = told
    return TimelineEntry(at, what, dict(zip(_DETAILS.get(what, ()), values, strict=False)))


def _worded(value: Any) -> str:
    return ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
