"""The gangs of one profile: their members, how many of them exist, and how many have a place.

Rules:
1. The first gang rule whose key is not None applies to a pod; rule and key together name the gang.
2. Members are the pods of the profile's scheduler name that are pending, reserved or bound: not finished, and not
   deleted before they were bound.
3. If members differ, the largest minimum, the shortest timeout and the shortest wait count. A minimum under 1 counts
   as 1.
4. A gang with fewer members than its minimum is incomplete: its members are held before the queue. Members that are
   reserved or bound stay where they are.
5. A rule that fails on a pod holds that pod and says why, until the pod or the policy changes.
6. Members that have succeeded (`counts: finished`), and those that another scheduler has bound (`anyScheduler`), had or
   have a place: so many fewer are needed of the others. One that another scheduler has not bound yet is waited for.
7. A member has a place while it is reserved or bound. A gang whose minimum have a place is satisfied: further members
   are scheduled on their own.

Example: a, b and c carry the key "crew" and a minimum of 3. While only a and b exist the gang is incomplete, and both
are told `gang crew: 2 of 3 members exist`. With c it is complete, and the three are tried together. A fourth member
goes its own way once three have a place.

This file only counts. `SchedulingQueue` holds members, `gang_cycle` places them, `gang_release` gives places back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.framework.profile import GangRule


class Terms(NamedTuple):
    """What one member says about its gang."""

    minimum: int
    timeout: float
    """Seconds."""
    waits: float | None = None
    """Seconds for which room is reserved for the gang; None if its rule reserves none."""


class Gang:
    """The pods of one gang."""

    def __init__(self, rule: str, key: str) -> None:
        self.rule = rule
        self.key = key
        self.members: dict[str, Terms] = {}
        """By pod UID, in the order in which they came."""
        self.placed: set[str] = set()
        """UIDs of the members that are reserved or bound."""
        self.elsewhere: set[str] = set()
        """UIDs of members that need no place of ours: succeeded, or bound by another scheduler."""
        self.awaited: dict[str, str] = {}
        """UID -> name, of members that another scheduler has still to bind."""
        self.is_complete = False
        self.requeue_refused = False
        """Whether members that were refused together are to be tried again, though no event says so."""
        self.refused_since: float | None = None
        """When it was refused first since it was last satisfied, in seconds; None while it was not."""
        self.unplaceable: object = None
        """The circumstances under which it would not fit even on an empty cluster."""
        self._terms: Counter[Terms] = Counter()

    @property
    def minimum(self) -> int:
        """How many members it takes beside those that need no place of ours."""
        return max(1, self.wanted - len(self.elsewhere))

    @property
    def wanted(self) -> int:
        """How many members it takes in all."""
        return max((terms.minimum for terms in self._terms), default=1)

    @property
    def timeout(self) -> float:
        """Seconds that a part of the gang may hold room: reserved, or bound while another such gang waits for it."""
        return min((terms.timeout for terms in self._terms), default=0.0)

    @property
    def waits(self) -> float | None:
        """Seconds that the gang waits for room at most; None if its rule does not say."""
        return min((terms.waits for terms in self._terms if terms.waits is not None), default=None)

    @property
    def overdue_at(self) -> float:
        """From when on, in seconds, a gang that is bound in part gives way to another; inf if it was not refused."""
        return inf if self.refused_since is None else self.refused_since + self.timeout

    @property
    def needed(self) -> int:
        """How many more members must be placed together; 0 once the gang is satisfied."""
        return max(0, self.minimum - len(self.placed))

    @property
    def message(self) -> str:
        """How far the gang is, for its members' conditions and events."""
        exist = len(self.members) + len(self.elsewhere)
        first = next(iter(self.awaited.values()), "")
        waits = f"; {first} waits for its own scheduler" if first else ""
        return f"gang {self.rule}: {exist} of {self.wanted} members exist{waits}"

    def add(self, uid: str, terms: Terms) -> None:
        """Count a member."""
        self.members[uid] = terms
        self._terms[terms] += 1

    def remove(self, uid: str) -> None:
        """Count a member no more."""
        if uid in self.members:
            self._terms -= Counter([self.members.pop(uid)])
        self.placed.discard(uid)
        self.elsewhere.discard(uid)
        self.awaited.pop(uid, None)

    def count(self, uid: str, awaited: str) -> None:
        """Count a member that needs no place of ours, or the one called `awaited` that waits for another scheduler."""
        self.awaited.pop(uid, None)
        if awaited:
            self.awaited[uid] = awaited
        else:
            self.elsewhere.add(uid)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is counted."""
        return not (self.members or self.elsewhere or self.awaited)


class GangTable:
    """The gangs of one profile. Methods that change it answer with the gangs whose completeness changed."""

    def __init__(self, rules: tuple[GangRule, ...]) -> None:
        self._rules = rules
        self.counts_finished = any(rule.counts_finished for rule in rules)
        self.any_scheduler = any(rule.any_scheduler for rule in rules)
        self._gang_of: dict[str, Gang] = {}
        self._gangs: dict[tuple[str, str], Gang] = {}
        self._problems: dict[str, str] = {}
        self.recounted: dict[tuple[str, str], Gang] = {}
        """Incomplete gangs whose message changed; the queue empties it."""
        self.changed: dict[tuple[str, str], Gang] = {}
        """Gangs whose placed members may be too few now, or enough to be bound; `gang_release` empties it."""

    def __iter__(self) -> Iterator[Gang]:
        """Every gang with at least one member of ours."""
        return iter([gang for gang in self._gangs.values() if gang.members])

    def of(self, uid: str) -> Gang | None:
        """The gang that the pod is a member of."""
        return self._gang_of.get(uid)

    def get(self, rule: str, key: str) -> Gang | None:
        """The gang, if it has members of ours."""
        gang = self._gangs.get((rule, key))
        return gang if gang is not None and gang.members else None

    def hold_message(self, uid: str) -> str:
        """Why the pod may not enter the queue; empty if it may."""
        gang = self._gang_of.get(uid)
        if gang is not None:
            return "" if gang.is_complete else gang.message
        return self._problems.get(uid, "")

    def observe(self, pod: PodInfo) -> list[Gang]:
        """A member came or changed; its gang may be another one than before."""
        try:
            joins = self._membership(pod)
        except Exception as problem:
            flipped = self.forget(pod.uid)
            self._problems[pod.uid] = f"gang: {problem}"
            return flipped
        gang = self._gang_of.get(pod.uid)
        if gang is not None and joins == (gang.rule, gang.key, gang.members.get(pod.uid)):
            if (pod.state is not PodState.PENDING) != (pod.uid in gang.placed):
                self.note_place(pod)
                gang.requeue_refused = True  # somebody else placed the member
            return []
        left, joined = self._leave(pod.uid), None
        if joins is not None:
            rule, key, terms = joins
            joined = self._gang_of[pod.uid] = self._of_key(rule, key)
            joined.add(pod.uid, terms)
            self.note_place(pod)
            joined.requeue_refused = True
        return self._flipped(left, joined)

    def observe_other(self, pod: PodInfo, is_ours: bool) -> list[Gang]:
        """A pod that is finished, or of another scheduler, came or changed: it may count (rule 6)."""
        joins = self._joins_beside(pod, is_ours)
        if joins is None:
            return self.forget(pod.uid)
        has_place = pod.finished or pod.state is PodState.BOUND
        awaited = "" if has_place else f"{pod.key} of scheduler `{pod.scheduler_name}`"
        before = self._gang_of.get(pod.uid)
        if before is not None and before is self._gangs.get(joins):
            known = "" if pod.uid in before.elsewhere else before.awaited.get(pod.uid)
            if known == awaited:
                return []
        left = self._leave(pod.uid)
        gang = self._gang_of[pod.uid] = self._of_key(*joins)
        gang.count(pod.uid, awaited)
        if gang.members:
            self.changed[joins] = gang
            gang.requeue_refused = True
        return self._flipped(left, gang)

    def _joins_beside(self, pod: PodInfo, is_ours: bool) -> tuple[str, str] | None:
        """Rule and key of the gang that counts the pod though it is not to be placed. A rule that fails has none."""
        for rule in self._rules:
            try:
                key = rule.key(pod)
            except Exception:
                return None
            if key is not None:
                counts = (is_ours or rule.any_scheduler) and (not pod.finished or rule.counts_finished)
                return (rule.name, key) if counts else None
        return None

    def note_place(self, pod: PodInfo) -> None:
        """The pod was given a place, or lost it."""
        gang = self._gang_of.get(pod.uid)
        if gang is None or pod.uid not in gang.members:
            return
        if pod.state is PodState.PENDING:
            gang.placed.discard(pod.uid)
        else:
            gang.placed.add(pod.uid)
            if not gang.needed:
                gang.refused_since = None
        self.changed[gang.rule, gang.key] = gang

    def mark_changed(self, uid: str, requeue_refused: bool = False) -> bool:
        """Have the reservations of the pod's gang reviewed before the message is done, and (`requeue_refused`) the
        members tried again that were refused. False for a pod without mates."""
        gang = self._gang_of.get(uid)
        if gang is None or gang.minimum < 2:
            return False
        self.changed[gang.rule, gang.key] = gang
        gang.requeue_refused |= requeue_refused
        return True

    def take_changed(self) -> list[Gang]:
        """The gangs to be reviewed since the last call."""
        taken = list(self.changed.values())
        self.changed.clear()
        return taken

    def forget(self, uid: str) -> list[Gang]:
        """The pod is no member any more: deleted, finished, or of another gang."""
        return self._flipped(self._leave(uid))

    def _leave(self, uid: str) -> Gang | None:
        """Take the pod out of its gang, which this answers with."""
        self._problems.pop(uid, None)
        gang = self._gang_of.pop(uid, None)
        if gang is None:
            return None
        gang.remove(uid)
        if gang.members:
            self.changed[gang.rule, gang.key] = gang
            gang.requeue_refused = True
        else:
            if gang.is_empty:
                del self._gangs[gang.rule, gang.key]
            self.changed.pop((gang.rule, gang.key), None)
        return gang

    def _flipped(self, *touched: Gang | None) -> list[Gang]:
        """Those of the gangs that are complete and were not before, or the other way round; a member that left and came
        back with other terms is one change, or none."""
        found = []
        for gang in dict.fromkeys(one for one in touched if one is not None):
            before, gang.is_complete = gang.is_complete, len(gang.members) >= gang.minimum
            if before is not gang.is_complete:
                found.append(gang)
            if gang.is_complete or not gang.members:
                self.recounted.pop((gang.rule, gang.key), None)
            else:
                self.recounted[gang.rule, gang.key] = gang
        return found

    def _membership(self, pod: PodInfo) -> tuple[str, str, Terms] | None:
        for rule in self._rules:
            key = rule.key(pod)
            if key is not None:
                return rule.name, key, Terms(max(1, rule.minimum(pod)), rule.timeout(pod), rule.waits(pod))
        return None

    def _of_key(self, rule: str, key: str) -> Gang:
        gang = self._gangs.get((rule, key))
        if gang is None:
            gang = self._gangs[rule, key] = Gang(rule, key)
        return gang
