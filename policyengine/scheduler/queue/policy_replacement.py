"""What becomes of the pods of a queue when one policy takes over from another, or a candidate decides about some.

A refused pod is woken only when one of its refusers is gone or is not what it was. When that cannot be told the
rule counts as changed: one attempt more does no harm, a pod that sleeps through its cure does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from policyengine.framework.events import POLICY_REPLACED
from policyengine.framework.plugin import Plugin
from policyengine.framework.profile import Profile
from policyengine.scheduler.queue.queued_pod import Place, Strategy
from policyengine.scheduler.queue.sub_queues import Places

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def replace_profile(places: Places, profile: Profile, members: Iterable[PodInfo], now: float) -> None:
    """Another policy takes over: every pod is admitted and keyed anew, and those wake whose refusing rule changed or
    vanished. `members` are all pods of the scheduler name, placed ones included.
    """
    before = places.profile
    if not queue_changed(before, profile):
        _replace_rules(places, profile, now)
        return
    waiting = [(pod, pod.place) for pod in places.pods.values() if pod.place is not Place.IN_FLIGHT]
    for queued, _ in waiting:
        places.detach(queued)
    places.replace_profile(profile)
    for pod in members:
        places.admission.gangs.observe(pod)
    for queued, place in waiting:
        queued.expiry = None
        if place is Place.UNSCHEDULABLE and (
            queued.by_candidate or not rules_changed(before, profile, queued.unschedulable_plugins)
        ):
            places.requeue(queued, Strategy.SKIP, POLICY_REPLACED.label, "", now)
        elif place is Place.ACTIVE:
            places.to_active(queued, POLICY_REPLACED.label, now)
        else:
            places.requeue(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
    places.in_flight.record(POLICY_REPLACED, None, None)


def _replace_rules(places: Places, profile: Profile, now: float) -> None:
    """Another policy takes over that has the same queue: pods stay where they are, but for those refused."""
    before = places.profile
    for queued in places.replace_rules(profile):
        if rules_changed(before, profile, queued.unschedulable_plugins):
            queued.expiry = None
            places.wake(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
    places.in_flight.record(POLICY_REPLACED, None, None)


def replace_candidate(places: Places, candidate: Profile | None, takes: Callable[[PodInfo], bool], now: float) -> None:
    """Another candidate decides about the pods that it `takes`, or none does. Those wake that the one before had
    refused, and those that the serving policy refused by a rule which is another in the candidate."""
    waiting = [pod for pod in places.pods.values() if pod.place is Place.UNSCHEDULABLE]
    refused = [pod for pod in waiting if pod.by_candidate]
    if candidate is not None:
        refused += [
            pod
            for pod in waiting
            if not pod.by_candidate
            and takes(pod.pod)
            and rules_changed(places.profile, candidate, pod.unschedulable_plugins)
        ]
    for queued in refused:
        places.detach(queued)
    places.replace_candidate(candidate)
    for queued in refused:
        queued.by_candidate, queued.expiry = False, None
        places.requeue(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
    places.in_flight.record(POLICY_REPLACED, None, None)


def rules_changed(before: Profile, after: Profile, names: frozenset[str]) -> bool:
    """Whether one of the plugins or rules of these names is another one now. True for no names: an error, or a
    refusal by nobody in particular.
    """
    return not names or any(_changed(before, after, name) for name in names)


def queue_changed(before: Profile, after: Profile) -> bool:
    """Whether pods may have to wait elsewhere or in another order. True where that cannot be told."""
    ours, theirs = before.fingerprints, after.fingerprints
    return ours is None or theirs is None or ours.queue != theirs.queue


def _changed(before: Profile, after: Profile, name: str) -> bool:
    ours, theirs = before.fingerprints, after.fingerprints
    if ours is None or theirs is None:
        return not _same(_named(before, name), _named(after, name))
    return ours.rules.get(name, ours.queue) != theirs.rules.get(name, theirs.queue)


def _named(profile: Profile, name: str) -> list[Plugin]:
    return [plugin for plugin in profile.plugins() if plugin.name == name]


def _same(before: list[Plugin], after: list[Plugin]) -> bool:
    return len(before) == len(after) and all(map(_equal, before, after))


def _equal(before: Plugin, after: Plugin) -> bool:
    """Where nobody has said what rules were made from: a `fingerprint` of their own, plugins their arguments."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    fingerprint = getattr(before, "fingerprint", None)
    if fingerprint is not None:
        return bool(fingerprint == getattr(after, "fingerprint", None))
    if before == after:
        return True
    arguments = getattr(before, "__dict__", None)
    return arguments is not None and arguments == getattr(after, "__dict__", None)
