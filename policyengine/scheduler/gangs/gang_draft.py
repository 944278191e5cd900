"""Members of a gang placed in the view while one decision is made: kept, or undone completely.

Members placed earlier count for those placed later: their room, what Reserve took for them, the volumes and devices
that are planned for them. Until the draft is kept it causes no event, no timeline entry and no action.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ASSIGNED_POD_ADD
from policyengine.framework.filtering import Diagnosis, fit_error_message
from policyengine.framework.post_filter import run_post_filters
from policyengine.framework.profile import GROUP_PLACEMENT, Profile
from policyengine.framework.scoring import NOMINATED, PACKED, Choice, unscored
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.placement import error_in, filter_nodes, reserve, select_node
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import NO_PLUGINS, QueuedPod
from policyengine.scheduler.reservations import Reservation

MOST_PREEMPTING = 64
"""Members for which room is made at once; a larger gang waits for room. Each takes a preemption try of its own, and
every pod has to be evaluated once more for each that is nominated."""
OUTSIDE = "node(s) outside the topology domain of the pod group"


@dataclass(slots=True, eq=False)
class Refused:
    """Why a member has no place in the draft."""

    queued: QueuedPod
    message: str
    plugins: frozenset[str] = NO_PLUGINS
    pending: frozenset[str] = NO_PLUGINS
    diagnosis: Diagnosis | None = None
    """None where the refusal came after the filters."""
    is_error: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """Members of a gang that are tried together."""

    core: Core
    served: ServedProfile
    gang: Gang
    members: list[QueuedPod]
    """In the queue's order."""
    count: int
    """How many of them have to be placed."""


class Draft:
    """The decision about an attempt's members, while it is being made."""

    def __init__(self, attempt: Attempt, within: NDArray[np.bool_] | None = None) -> None:
        """`within`: the rows on which members may be placed, `bool[nodes]`; None for any."""
        self._attempt = attempt
        self._core, self._served = attempt.core, attempt.served
        self._within = within
        self._undo = ExitStack()
        self.held: list[Reservation] = []
        """The members placed, in order."""
        self.refused: dict[str, Refused] = {}
        """By UID, those that found no place so far."""
        self.victims: list[tuple[Reservation, tuple[PodInfo, ...], str]] = []
        """For whom room would have to be made, who would have to go for it, and why these."""

    def fill(self) -> bool:
        """Place as many of the members as are needed, the first that fit; whether there are enough.

        Those refused by a plugin that the placing of other pods may help are tried again while members are placed.
        """
        waiting, needed = self._attempt.members, self._attempt.count
        helped = _helped_by_placing(self._served.runtime.profile)
        while waiting and len(self.held) < needed:
            before = len(self.held)
            for queued in waiting:
                if len(self.held) == needed:
                    break
                self._place(queued)
            if len(self.held) == before:
                break
            waiting = [one.queued for one in self.refused.values() if one.plugins & helped]
        return len(self.held) >= needed

    def pack(self) -> bool:
        """Place the smallest members, the largest of these first, each where it leaves the least room; whether there
        are enough. Finds room that the policy's own scores have scattered."""
        return all(self._place(queued, is_tight=True) for queued in self._smallest())

    def make_room(self) -> bool:
        """As `fill`, and place members that were refused where room can be made for them, as if it were made."""
        self.fill()
        needed = self._attempt.count
        spare = len(self.held) + len(self.refused) - needed
        for one in list(islice(self.refused.values(), MOST_PREEMPTING)):
            if spare < 0 or len(self.held) >= needed:
                break
            if self.victims and self._place(one.queued):
                continue  # there is room where a whole gang went for another member
            if not self._clear(one):
                spare -= 1
        return len(self.held) >= needed

    def pack_making_room(self) -> bool:
        """As `pack`, and make room for a member that fits nowhere before smaller ones are placed."""
        return all(
            self._place(queued, is_tight=True) or self._clear(self.refused[queued.uid]) for queued in self._smallest()
        )

    def without(self, uids: Iterable[str]) -> None:
        """Go on as if these pods were not there."""
        self._undo.enter_context(self._core.view.hypothetically(remove=uids))

    def keep(self) -> None:
        """The draft is what is done."""
        self._undo.pop_all()

    def undo(self) -> None:
        """Leave everything as it was."""
        self._undo.close()

    def _place(self, queued: QueuedPod, is_tight: bool = False) -> bool:
        try:
            refused = self._try(queued, is_tight)
        except Exception as failure:
            refused = Refused(queued, failed_with(failure).message, is_error=True)
        if refused is None:
            self.refused.pop(queued.uid, None)
        else:
            self.refused[queued.uid] = refused
        return refused is None

    def _try(self, queued: QueuedPod, is_tight: bool) -> Refused | None:
        core, evaluator = self._core, self._served.runtime.evaluator
        diagnosis = filter_nodes(core, self._served, queued.pod)
        if self._within is not None:
            diagnosis = diagnosis.within(self._within, GROUP_PLACEMENT, OUTSIDE)
        if len(diagnosis.feasible) == 0:
            error = error_in(diagnosis)
            if error is not None:
                return Refused(queued, error, is_error=True)
            return Refused(queued, diagnosis.message(), diagnosis.plugins, diagnosis.pending_plugins, diagnosis)
        snapshot = core.view.snapshot()
        pod = queued.pod
        if is_tight:
            node = snapshot.nodes.names[self._tightest(pod, diagnosis)]
            return self._take(queued, unscored(PACKED, diagnosis, node))
        return self._take(queued, select_node(evaluator, pod, snapshot, diagnosis))

    def _smallest(self) -> list[QueuedPod]:
        """The smallest members, as many as are needed, the largest first."""
        return sorted(self._attempt.members, key=self._size)[self._attempt.count - 1 :: -1]

    def _size(self, queued: QueuedPod) -> tuple[float, str]:
        """What the pod asks for, as parts of what the cluster has, added up."""
        nodes = self._core.view.nodes
        parts = (amount / max(1, int(nodes.allocatable(name).sum())) for name, amount in queued.pod.shape.amounts)
        return sum(parts), queued.uid

    def _tightest(self, pod: PodInfo, diagnosis: Diagnosis) -> int:
        """Of the feasible nodes the one with the least left of what the pod asks for; of equals the first by name."""
        nodes, rows = self._core.view.nodes, diagnosis.feasible
        left = np.zeros(len(rows))
        for name, amount in pod.shape.amounts:
            if amount:
                offered = nodes.allocatable(name)[rows]
                left += (offered - nodes.requested(name)[rows]) / np.maximum(offered, 1)
        best = rows[left == left.min()].tolist()
        return int(min(best, key=lambda row: nodes.known_as(nodes.names[row])))

    def _take(self, queued: QueuedPod, choice: Choice) -> Refused | None:
        core = self._core
        held = Reservation(queued, self._served, choice, self._served.runtime, core.now)
        core.view.assume(queued.uid, held.node)
        status = reserve(core, held)
        if status.is_success:
            self.held.append(held)
            self._undo.callback(self._give_back, held)
            return None
        self._give_back(held)
        if not status.is_rejection:
            return Refused(queued, f'running Reserve plugin "{status.plugin}": {status.message}', is_error=True)
        message = fit_error_message(1, [(reason, 1) for reason in status.reasons])
        return Refused(queued, message, frozenset({status.plugin}))

    def _give_back(self, held: Reservation) -> None:
        self._core.unreserve(held, announce=False)
        self._core.view.forget(held.queued.uid)

    def _clear(self, refused: Refused) -> bool:
        """Place the member where room can be made for it without its mates."""
        runtime, view, queued, diagnosis = self._served.runtime, self._core.view, refused.queued, refused.diagnosis
        mates = self._attempt.gang.members
        if diagnosis is None:
            return False
        found = run_post_filters(runtime.post_filters, queued.pod, diagnosis, runtime.evaluator, view)
        node = found.nominated_node_name
        if not found.status.is_success or not node or any(victim.uid in mates for victim in found.victims):
            return False
        self.without(victim.uid for victim in found.victims)
        if self._take(queued, unscored(NOMINATED, diagnosis, node)) is not None:
            return False
        del self.refused[queued.uid]
        self.victims.append((self.held[-1], found.victims, found.why))
        return True


def _helped_by_placing(profile: Profile) -> frozenset[str]:
    """The plugins that may let a pod pass once others were placed."""
    return frozenset(
        plugin.name
        for plugin in profile.filters
        if any(one.event.matches(ASSIGNED_POD_ADD) for one in plugin.events_to_register())
    )
