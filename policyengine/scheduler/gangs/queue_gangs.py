"""The gangs of one queue: whose members are held, who comes along with whom, and what held members are told.

Rules:
1. Members of a gang that became too small are held, those of one that is complete are let in (`gang`, rule 4).
2. How far an incomplete gang is, its held members are told once in a while: a gang of a thousand members that arrive
   one by one would otherwise cost half a million condition patches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyengine.scheduler.gangs.gang import Gang, GangTable
from policyengine.scheduler.queue.pre_enqueue import Denial
from policyengine.scheduler.queue.queued_pod import Place, QueuedPod, Strategy
from policyengine.scheduler.queue.sub_queues import Places

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

RECOUNT = 5.0
"""Seconds after which the members of an incomplete gang are told how far it is."""
_QUEUED = frozenset({Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE})


class QueueGangs:
    """The gangs of one queue. `now` is in seconds."""

    __slots__ = ("_places", "next_recount")

    def __init__(self, places: Places) -> None:
        self._places = places
        self.next_recount: float | None = None
        """When `tell` is due, in seconds; None while nothing changed."""

    @property
    def _table(self) -> GangTable:
        return self._places.admission.gangs

    def __iter__(self) -> Iterator[Gang]:
        """Every gang with at least one member."""
        return iter(self._table.gangs())

    def of(self, uid: str) -> Gang | None:
        """The gang the pod is a member of."""
        table = self._places.admission.gangs
        return None if table.is_empty else table.gang_of(uid)

    def get(self, rule: str, key: str) -> Gang | None:
        """The gang, if it has members."""
        return self._table.get(rule, key)

    # ---- members come, change and go

    def observe(self, pod: PodInfo, now: float) -> None:
        """A pod of this scheduler name, pending or placed, came or changed: its gang may be complete now."""
        table = self._table
        if not table.is_empty:
            self._regroup(table.observe(pod), now)

    def forget(self, uid: str, now: float) -> None:
        """A pod finished or is gone: its gang may have become too small."""
        table = self._table
        if not table.is_empty:
            self._regroup(table.forget(uid), now)

    def note_place(self, pod: PodInfo) -> None:
        """The pod was given a place by a decision, or lost it."""
        table = self._places.admission.gangs
        if not table.is_empty:
            table.note_place(pod)

    def touch(self, uid: str, is_roused: bool = False) -> None:
        """Something else happened that decides about a reservation of the pod's gang, or (`is_roused`) about those of
        its members that were refused."""
        gang = self.of(uid)
        if gang is not None:
            self._table.touch(gang, is_roused)

    def take_touched(self) -> list[Gang]:
        """The gangs whose reservations are to be looked at since the last call."""
        touched = self._table.touched
        if not touched:
            return []
        taken = list(touched.values())
        touched.clear()
        return taken

    # ---- tried together

    def team(self, gang: Gang, popped: QueuedPod) -> list[QueuedPod]:
        """The members to be tried together with the one just popped, it among them, in the queue's order.

        Not among them are those that wait out an error, and those that were refused for themselves: nothing has
        happened since that may cure it.
        """
        found = [popped]
        for uid in gang.members:
            queued = self._places.pods.get(uid)
            if queued is not None and (
                queued.place is Place.ACTIVE
                or (queued.place is Place.UNSCHEDULABLE and gang.rule in queued.unschedulable_plugins)
                or (queued.place is Place.BACKOFF and not queued.error_count)
            ):
                found.append(queued)
        return sorted(found, key=self._places.order)

    def rouse(self, gang: Gang, now: float) -> None:
        """Let the members that were refused look again: the gang is not what it was."""
        for uid in list(gang.members):
            queued = self._places.pods.get(uid)
            if queued is not None and queued.place is Place.UNSCHEDULABLE:
                self._places.wake(queued, Strategy.AFTER_BACKOFF, "GangChanged", gang.rule, now)

    # ---- held

    def tell(self) -> None:
        """Bring what held pods were told about their gang up to date."""
        self.next_recount = None
        recounted = self._table.recounted
        for gang in recounted.values():
            for uid in gang.members:
                queued = self._places.pods.get(uid)
                if queued is not None and queued.place is Place.HELD and queued.gate_message != gang.message:
                    queued.gate_message = gang.message
                    self._places.notice(queued, Denial(Place.HELD, "", gang.message), again=True)
        recounted.clear()

    def _regroup(self, flipped: list[Gang], now: float) -> None:
        """Rule 1."""
        places = self._places
        for gang in flipped:
            for uid in list(gang.members):
                queued = places.pods.get(uid)
                if queued is None:
                    continue
                if gang.is_complete and queued.place is Place.HELD:
                    places.wake(queued, Strategy.AFTER_BACKOFF, "GangComplete", gang.rule, now)
                elif not gang.is_complete and queued.place in _QUEUED:
                    places.detach(queued)
                    places.keep_out(queued, Denial(Place.HELD, "", gang.message), now)
        if self._table.recounted and self.next_recount is None:
            self.next_recount = now + RECOUNT
