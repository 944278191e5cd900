"""Who belongs to which gang, how many members exist, and how many of them have a place.

Rules:
1. The first gang rule whose key is not None applies to a pod; rule and key together name the gang.
2. Members are the pods of the profile's scheduler name that are pending, reserved or bound: not finished, and
   not on their way out before they were bound.
3. Of differing values the largest minimum, the shortest timeout and the shortest wait count. A minimum under 1
   counts as 1.
4. A gang with fewer members than its minimum is incomplete: those of its members that are still queued are
   held before the queue. Members that are reserved or bound stay where they are.
5. A rule that fails on a pod holds that pod and says why; it is asked again when the pod or the policy changes.
6. A member has a place while it is reserved or bound. A gang whose minimum have one is satisfied: further members
   go on their own.

This file only counts. Who is held lies with `queue`; that members are placed together or not at all with `gang_cycle`;
that no part of a gang keeps room for nothing with `gang_release`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from policyengine.cluster.pod_info import PodState
from policyengine.framework.profile import GangRule
from policyengine.scheduler.queue.deferred_work import Aftermath

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


_Value = TypeVar("_Value", int, float)


class Membership(NamedTuple):
    """What one pod says about its gang."""

    rule: str
    key: str
    minimum: int
    timeout: float
    """Seconds."""
    waits: float | None = None
    """Seconds after which nothing is placed any more where room is being kept for the gang; None keeps none."""


class Gang:
    """The pods of one gang."""

    __slots__ = (
        "_minimums",
        "_timeouts",
        "_waits",
        "hopeless",
        "is_complete",
        "is_roused",
        "key",
        "members",
        "placed",
        "refused_since",
        "rule",
    )

    def __init__(self, rule: str, key: str) -> None:
        self.rule = rule
        self.key = key
        self.members: dict[str, Membership] = {}
        """By pod UID, in the order in which they came."""
        self.placed: set[str] = set()
        """UIDs of the members that are reserved or bound."""
        self.is_complete = False
        self.is_roused = False
        """Whether members that were refused together should look again, though no event says so."""
        self.refused_since: float | None = None
        """When it was refused first, in seconds; None while it was not."""
        self.hopeless: object = None
        """The circumstances under which it would not fit even if every pod went."""
        self._minimums: Counter[int] = Counter()
        self._timeouts: Counter[float] = Counter()
        self._waits: Counter[float] = Counter()

    @property
    def minimum(self) -> int:
        """How many members it takes."""
        return max(self._minimums, default=1)

    @property
    def timeout(self) -> float:
        """Seconds that a partial reservation may last."""
        return min(self._timeouts, default=0.0)

    @property
    def waits(self) -> float | None:
        """Seconds that the gang is to wait for room at most; None where its rule does not say."""
        return min(self._waits, default=None)

    @property
    def needed(self) -> int:
        """How many more members must be placed together; 0 once the gang is satisfied."""
        return max(0, self.minimum - len(self.placed))

    @property
    def message(self) -> str:
        """How far the gang is, for its members' conditions and events."""
        return f"gang {self.rule}: {len(self.members)} of {self.minimum} members exist"

    def add(self, uid: str, member: Membership) -> bool:
        """Count a member; whether the gang became complete or incomplete by it."""
        self.members[uid] = member
        self._minimums[member.minimum] += 1
        self._timeouts[member.timeout] += 1
        if member.waits is not None:
            self._waits[member.waits] += 1
        return self._flipped()

    def remove(self, uid: str) -> bool:
        """Count a member no more; whether the gang became complete or incomplete by it."""
        member = self.members.pop(uid)
        self.placed.discard(uid)
        _take_one(self._minimums, member.minimum)
        _take_one(self._timeouts, member.timeout)
        if member.waits is not None:
            _take_one(self._waits, member.waits)
        return self._flipped()

    def _flipped(self) -> bool:
        before = self.is_complete
        self.is_complete = len(self.members) >= self.minimum
        return before is not self.is_complete


class GangTable:
    """The gangs of one profile. Methods that change it answer with the gangs whose completeness changed."""

    __slots__ = ("_aftermath", "_gang_of", "_gangs", "_problems", "_rules", "is_empty", "recounted", "touched")

    def __init__(self, rules: tuple[GangRule, ...], aftermath: Aftermath | None = None) -> None:
        self._rules = rules
        self.is_empty = not rules
        """Whether the profile has no gang rule, so that nobody is ever held."""
        self._aftermath = Aftermath() if aftermath is None else aftermath
        self._gangs: dict[tuple[str, str], Gang] = {}
        self._gang_of: dict[str, Gang] = {}
        self._problems: dict[str, str] = {}
        self.recounted: dict[tuple[str, str], Gang] = {}
        """Incomplete gangs whose message changed; whoever tells the members empties it."""
        self.touched: dict[tuple[str, str], Gang] = {}
        """Gangs whose placed members may be too few now, or enough to be let go; `gang_release` empties it."""

    def gang_of(self, uid: str) -> Gang | None:
        """The gang the pod is a member of."""
        return self._gang_of.get(uid)

    def get(self, rule: str, key: str) -> Gang | None:
        """The gang, if it has members."""
        return self._gangs.get((rule, key))

    def gangs(self) -> list[Gang]:
        """Every gang with at least one member."""
        return list(self._gangs.values())

    def hold_message(self, uid: str) -> str:
        """Why the pod may not enter the queue; empty when it may."""
        gang = self._gang_of.get(uid)
        if gang is not None:
            return "" if gang.is_complete else gang.message
        return self._problems.get(uid, "") if self._problems else ""

    def observe(self, pod: PodInfo) -> list[Gang]:
        """A member came or changed; its gang may be another one than before."""
        if not self._rules:
            return []
        try:
            membership = self._membership(pod)
        except Exception as problem:
            changed = self.forget(pod.uid)
            self._problems[pod.uid] = f"gang: {problem}"
            return changed
        gang = self._gang_of.get(pod.uid)
        if gang is not None and membership == gang.members[pod.uid]:
            if (pod.state is not PodState.PENDING) != (pod.uid in gang.placed):
                self.note_place(pod)
                gang.is_roused = True  # somebody else placed the member
            return []
        changed = self.forget(pod.uid)
        if membership is not None:
            joined = self._join(pod.uid, membership)
            self.note_place(pod)
            self._gang_of[pod.uid].is_roused = True
            # Leaving and coming back with other values is one change, or none.
            changed = [gang for gang in changed if gang is not joined] + ([joined] if joined else [])
        return changed

    def note_place(self, pod: PodInfo) -> None:
        """The pod was given a place, or lost it."""
        gang = self._gang_of.get(pod.uid)
        if gang is None:
            return
        if pod.state is PodState.PENDING:
            gang.placed.discard(pod.uid)
        else:
            gang.placed.add(pod.uid)
        self.touch(gang)

    def touch(self, gang: Gang, is_roused: bool = False) -> None:
        """Have the gang's reservations, and (`is_roused`) its refused members, looked at before the message is done."""
        self.touched[gang.rule, gang.key] = gang
        gang.is_roused |= is_roused
        self._aftermath.is_due = True

    def forget(self, uid: str) -> list[Gang]:
        """The pod is no member any more: deleted, finished, or of another gang."""
        self._problems.pop(uid, None)
        gang = self._gang_of.pop(uid, None)
        if gang is None:
            return []
        flipped = gang.remove(uid)
        self._recount(gang)
        if gang.members:
            self.touch(gang, is_roused=True)
        else:
            del self._gangs[gang.rule, gang.key]
            self.touched.pop((gang.rule, gang.key), None)
        return [gang] if flipped else []

    def validate(self) -> None:
        """Assert that every gang counts exactly its members."""
        for gang in self._gangs.values():
            assert gang.members, f"gang {gang.rule} {gang.key} has no members"
            assert gang.is_complete == (len(gang.members) >= gang.minimum), f"gang {gang.key}: {gang.message}"
            assert gang.minimum == max(member.minimum for member in gang.members.values())
            assert gang.timeout == min(member.timeout for member in gang.members.values())
            assert gang.placed <= gang.members.keys(), f"gang {gang.key} has placed strangers"
        assert sum(len(gang.members) for gang in self._gangs.values()) == len(self._gang_of)

    def _membership(self, pod: PodInfo) -> Membership | None:
        for rule in self._rules:
            key = rule.key(pod)
            if key is not None:
                return Membership(rule.name, key, max(1, rule.minimum(pod)), rule.timeout(pod), rule.waits(pod))
        return None

    def _join(self, uid: str, member: Membership) -> Gang | None:
        gang = self._gangs.get((member.rule, member.key))
        if gang is None:
            gang = self._gangs[member.rule, member.key] = Gang(member.rule, member.key)
        self._gang_of[uid] = gang
        flipped = gang.add(uid, member)
        self._recount(gang)
        return gang if flipped else None

    def _recount(self, gang: Gang) -> None:
        if gang.is_complete or not gang.members:
            self.recounted.pop((gang.rule, gang.key), None)
        else:
            self.recounted[gang.rule, gang.key] = gang


def _take_one(counter: Counter[_Value], value: _Value) -> None:
    counter[value] -= 1
    if not counter[value]:
        del counter[value]
