"""What becomes of every pod that waits: the scheduler itself, played on virtual time, until nothing more happens.

    told = forecast(read_objects(cluster), profiles, now)
    told["default/crew-1"].what         # Fate.HELD
    told["default/crew-1"].message      # "gang pod-group: 2 of 3 members exist"

Objects are decoded once and never written to: to ask about a change, replace one in the list and ask again.

Rules:
1. Pods wait in the queue since they were created. (A running scheduler counts from a pod's last refusal; what it keeps
   in memory, such as backoffs, no object tells. Everything is tried once right away.)
2. Nobody else acts: no controller makes pods or volumes. Pods on a node that are being deleted, victims among them, go
   at their deletionTimestamp, before what else ends at that moment (their grace is the most they are given); one that
   should have gone `STUCK_AFTER` seconds ago stays.
3. Time passes, as far as `HORIZON`, while a pod backs off, waits at Permit, or waits for a pod that is going; and until
   each of these has been tried at two moments since something last came of it, or has come to wait at Permit at two. A
   pod that a Permit rule makes wait again and again is thus told as waiting. Nothing waits for the passing of minutes
   alone.
4. The work is bounded (`forecast`'s `limit`): what is known by then is told, `is_complete` False.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import heapify, heappop, heappush
from math import inf

from policyengine.cluster.kinds import NODES, PODS
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.dump import DumpedObject
from policyengine.framework.profile import Profile
from policyengine.scheduler.messages import Message, NodeObserved, ObjectObserved, PodDeleted, PodObserved
from policyengine.scheduler.state import SchedulerState
from policyengine.suggestion import nearest_first
from policyengine.trials.trial import LIMIT, Trial, TrialTooLong
from policyengine.trials.trial_cluster import uid_of

HORIZON = 600.0
"""Seconds of virtual time at most."""
STUCK_AFTER = 60.0
"""Seconds after its deletionTimestamp that a pod is believed to go still."""
NOT_TRIED = "not tried: what comes before it takes too many steps"
_HELD_TOLD = 5.0
"""Seconds after which held pods have been told how far their gang is (`scheduling_queue.GANG_MESSAGE_AFTER`)."""
_TRIED = 2
_MOVED_BY_TIME = {"active": "attempted", "backoff": "attempted", "binding": "attempted", "waiting at permit": "waiting"}
"""Places that a pod leaves by the passing of time -> the line of its timeline that says it came to that again."""
_REFUSALS = ("refused", "failed", "gated", "held")
_WAITS = ("waiting", "preparing")
"""Lines of a pod's timeline that say why it waits: without a node, with one."""


class Fate(Enum):
    """What becomes of a pod that waits."""

    BOUND = "bound"
    HELD = "held"
    """With its gang, which is not complete."""
    GATED = "gated"
    UNSCHEDULABLE = "unschedulable"
    """Tried and refused, or failed with an error."""
    WAITING = "waiting"
    """It has a node, and waits at Permit, or for volumes and devices."""
    UNSERVED = "unserved"
    """No policy serves its schedulerName."""
    TERMINATING = "terminating"
    """It is being deleted, and no scheduler places it."""
    EVICTED = "evicted"
    """Another pod had it go."""


_FATES = {
    "bound": Fate.BOUND,
    "held": Fate.HELD,
    "gated": Fate.GATED,
    "waiting at permit": Fate.WAITING,
    "waiting at prebind": Fate.WAITING,
    "binding": Fate.WAITING,
    "unserved": Fate.UNSERVED,
    "being deleted": Fate.TERMINATING,
}
"""By what `SchedulerState.place` says in the end; in any other place the pod has been refused."""


@dataclass(frozen=True, slots=True)
class PodForecast:
    """What becomes of one pod."""

    pod: str
    """`namespace/name`."""
    uid: str
    scheduler_name: str
    what: Fate
    node: str = ""
    """Where it is bound, or has a node while it waits."""
    after: float = 0.0
    """Seconds from now at which it was bound."""
    message: str = ""
    """Why it is not bound, in full, as the scheduler writes it into events and conditions."""
    victims: tuple[str, ...] = ()
    """Pods that went, or had gone, for it: `namespace/name`."""
    served: tuple[str, ...] = ()
    """UNSERVED: the scheduler names that are served, the nearest to the pod's first."""
    attempts: int = 0
    nominated: str = ""
    """The node that is being cleared for it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What becomes of all pods that wait."""

    pods: tuple[PodForecast, ...]
    """In the order in which the queue gave them out; then those that it did not, in the order of their creation."""
    evicted: Mapping[str, str] = field(default_factory=dict)
    """Pod that had to go -> the pod it went for, both `namespace/name`, in order."""
    seconds: float = 0.0
    """How much time passed."""
    is_complete: bool = True
    """False: the bound on the work was reached; pods not tried by then are told as unschedulable, and that."""

    def __getitem__(self, pod: str) -> PodForecast:
        """By `namespace/name`; KeyError where it does not wait."""
        for one in self.pods:
            if one.pod == pod:
                return one
        raise KeyError(pod)


Tried = Callable[[SchedulerState, Sequence[str]], None]
"""Told, after each cycle and before what it asked for is carried out, the state and the UIDs of the pods it tried."""


def forecast(
    objects: Sequence[DumpedObject],
    profiles: Sequence[Profile],
    now: float,
    *,
    limit: int = LIMIT,
    tried: Tried | None = None,
) -> Forecast:
    """Play all pods that wait among the objects.

    Arguments:
        profiles: those that serve, of one scheduler name each.
        now: seconds since the epoch.
        limit: the messages that the scheduler takes at most, beyond the first lists.
        tried: is told of every cycle.
    """
    return played(objects, profiles, now, limit=limit, tried=tried)[0]


def played(
    objects: Sequence[DumpedObject],
    profiles: Sequence[Profile],
    now: float,
    *,
    limit: int = LIMIT,
    tried: Tried | None = None,
) -> tuple[Forecast, SchedulerState]:
    """`forecast`, and the scheduler as it is in the end."""
    pods = [one.object for one in objects if one.kind == PODS.kind]
    waiting = {uid_of(pod): pod for pod in sorted(filter(waits, pods), key=_created)}
    trial = Trial(
        profiles,
        now,
        limit=limit + len(objects) + 1,
        listed=listed(objects, waiting, now),
        victims_linger=True,
        tried=None if tried is None else lambda uids: tried(trial.state, uids),
    )
    try:
        _play(trial, waiting, _leaving(pods, now))
        is_complete = True
    except TrialTooLong:
        is_complete = False
    return _told(trial, waiting, now, is_complete), trial.state


def waits(pod: Pod) -> bool:
    """Whether the pod is pending: on no node, and not at its end."""
    return not pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")


def _created(pod: Pod) -> float:
    return seconds_or_none(pod.metadata.creation_timestamp) or 0.0


def listed(objects: Iterable[DumpedObject], waiting: Mapping[str, Pod], now: float) -> Iterator[tuple[float, Message]]:
    """The objects as messages, in order of time: pods that wait when they were created, the others around them."""
    first = min((_created(pod) for pod in waiting.values()), default=now)
    for one in objects:
        if one.kind == NODES.kind:
            yield min(first, now), NodeObserved(one.object)
        elif one.kind != PODS.kind:
            yield min(first, now), ObjectObserved(one.kind, one.object)
    for pod in waiting.values():
        yield min(_created(pod), now), PodObserved(pod)
    for one in objects:
        if one.kind == PODS.kind and not waits(one.object):
            yield now, PodObserved(one.object)


def _leaving(pods: Iterable[Pod], now: float) -> list[tuple[float, str]]:
    """(when, UID) of the pods on nodes that are being deleted and will be gone. Rule 2."""
    ends = (
        (seconds_or_none(pod.metadata.deletion_timestamp), uid_of(pod))
        for pod in pods
        if pod.spec.node_name and pod.metadata.deletion_timestamp is not None and not pod.metadata.finalizers
    )
    return [(max(end, now), uid) for end, uid in ends if end is not None and end >= now - STUCK_AFTER]


def _play(trial: Trial, waiting: Iterable[str], leaving: list[tuple[float, str]]) -> None:
    """Rule 3."""
    end = trial.now + HORIZON
    heapify(leaving)
    tried: Counter[tuple[str, str]] = Counter()  # (UID, line) -> at how many moments
    come_of_it, seen = (0, 0), 0
    trial.settle()
    while True:
        progress = len(trial.binds), len(trial.evictions)
        if progress != come_of_it:
            victims = (trial.cluster.pods.get(victim.uid) for _, victim in trial.evictions[come_of_it[1] :])
            for entry in _leaving([pod for pod in victims if pod is not None], trial.now):
                heappush(leaving, entry)
            tried.clear()
            come_of_it = progress
        tried.update({(uid, line.what) for uid, line in trial.history[seen:]})
        seen = len(trial.history)
        goes = leaving[0][0] if leaving else inf
        due = trial.next_due()
        places = ((uid, _MOVED_BY_TIME.get(trial.state.place(uid))) for uid in waiting)
        may_move = any(line is not None and tried[uid, line] < _TRIED for uid, line in places)
        if due is not None and due <= end and due < goes and (may_move or trial.state.awaits_overdue_gang):
            trial.advance_to(due)
        elif goes < end:
            gone = []
            while leaving and leaving[0][0] <= goes:
                pod = trial.cluster.pods[heappop(leaving)[1]].metadata
                gone.append(PodDeleted(pod.namespace, pod.name, pod.uid))
            trial.advance_to(goes, *gone)
            tried.clear()
        else:
            break
    if any(trial.state.place(uid) == "held" for uid in waiting):
        trial.advance(_HELD_TOLD)


# --- what is told ---------------------------------------------------------------------------------------


def _told(trial: Trial, waiting: Mapping[str, Pod], now: float, is_complete: bool) -> Forecast:
    keys = {uid: pod.metadata.key for uid, pod in waiting.items()}
    served = [profile.scheduler_name for profile in trial.state.profiles]
    victims: dict[str, list[str]] = {}
    evicted: dict[str, str] = {}
    for _, victim in trial.evictions:
        key = f"{victim.namespace}/{victim.name}"
        victims.setdefault(victim.preemptor, []).append(key)
        evicted[key] = keys[victim.preemptor]
    attempts = Counter(trial.popped)
    bound_at = {bind.uid: at for at, bind in trial.binds}
    said = _said(trial)
    told = []
    for uid in dict.fromkeys([*(uid for uid in trial.popped if uid in waiting), *waiting]):
        pod = trial.state.view.pods.get(uid)
        is_there = uid in trial.cluster.pods
        fate = _FATES.get(trial.state.place(uid), Fate.UNSCHEDULABLE) if is_there else Fate.EVICTED
        scheduler_name = waiting[uid].spec.scheduler_name
        node = "" if pod is None else pod.node_name
        message = said.get(uid, "" if is_complete else NOT_TRIED)
        if fate is Fate.EVICTED:
            message = f"evicted for {evicted.get(keys[uid], 'another pod')}"
        told.append(
            PodForecast(
                pod=keys[uid],
                uid=uid,
                scheduler_name=scheduler_name,
                what=fate,
                node=node,
                after=bound_at[uid] - now if fate is Fate.BOUND and uid in bound_at else 0.0,
                message="" if fate in (Fate.BOUND, Fate.UNSERVED, Fate.TERMINATING) else message,
                victims=tuple(victims.get(uid, ())),
                served=nearest_first(scheduler_name, served) if fate is Fate.UNSERVED else (),
                attempts=attempts[uid],
                nominated="" if pod is None or node else pod.nominated_node_name,
            )
        )
    return Forecast(tuple(told), evicted, trial.now - now, is_complete)


def _said(trial: Trial) -> dict[str, str]:
    """UID -> why the pod waits: what was last said of it. How far a gang is is said again in its members' conditions
    only."""
    said = {}
    for uid, line in trial.history:
        if line.what in _REFUSALS:
            said[uid] = line.details["message"]
        elif line.what in _WAITS:
            said[uid] = f"waiting for {line.details['by']}"
    held = [uid for uid in said if trial.state.place(uid) == "held"]
    return said | {uid: message for uid in held if (message := trial.refusal(uid))}
