"""Which pods of a queue are requeued if another policy takes over, or if another candidate decides about some pods.

A refused pod is woken only if one of its refusers is gone or has changed. If that is unknown the rule counts as
changed: a needless attempt does no harm, a pod that is not woken is stranded.

Example: p was refused by `filter "zone"`, q by `filter "gpu"`. A new text changes `gpu` alone: q is tried again, p goes
on waiting for what `zone` registered. If the new text changes the queue's order as well, every pod passes the gate and
gets its key anew; p still waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import POLICY_REPLACED
from policyengine.framework.plugin import Plugin
from policyengine.framework.profile import Profile
from policyengine.scheduler.queue.queued_pods import Happening, Place, Strategy
from policyengine.scheduler.queue.sub_queues import SubQueues


def replace_profile(
    queue: SubQueues, profile: Profile, members: Iterable[PodInfo], others: Iterable[PodInfo], now: float
) -> None:
    """Another policy takes over. `members` are all pods of the scheduler name, placed ones included, `others` those
    that its gangs may count besides."""
    before = queue.profile
    if queue_changed(before, profile):
        _replace_queue(queue, profile, members, others, now)
    else:
        for queued in queue.replace_rules(profile):
            if rules_changed(before, profile, queued.unschedulable_plugins):
                queue.wake(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
    queue.in_flight.record(Happening(POLICY_REPLACED, None, None))


def _replace_queue(
    queue: SubQueues, profile: Profile, members: Iterable[PodInfo], others: Iterable[PodInfo], now: float
) -> None:
    """Every pod passes the gate and gets its key anew."""
    before, event = queue.profile, POLICY_REPLACED.label
    waiting = [(pod, pod.place) for pod in queue.pods.values() if pod.place is not Place.IN_FLIGHT]
    for queued, _ in waiting:
        queue.detach(queued)
    queue.replace_profile(profile)
    for pod in members:
        queue.gangs.observe(pod)
    for pod in others:
        queue.gangs.observe_other(pod, pod.scheduler_name == profile.scheduler_name)
    for queued, place in waiting:
        if place is Place.UNSCHEDULABLE and (
            queued.by_candidate or not rules_changed(before, profile, queued.unschedulable_plugins)
        ):
            queue.requeue(queued, Strategy.SKIP, event, "", now)
        elif place is Place.ACTIVE:
            queue.to_active(queued, event, now)
        else:
            queue.requeue(queued, Strategy.AFTER_BACKOFF, event, "", now)


def replace_candidate(
    queue: SubQueues, candidate: Profile | None, takes: Callable[[PodInfo], bool], now: float
) -> None:
    """Another candidate decides about the pods that it `takes`, or none does. Those pods are woken that the candidate
    before had refused, and those that the serving policy refused by a rule which differs in the new candidate."""
    waiting = [pod for pod in queue.pods.values() if pod.place is Place.UNSCHEDULABLE]
    refused = [pod for pod in waiting if pod.by_candidate]
    if candidate is not None:
        refused += [
            pod
            for pod in waiting
            if not pod.by_candidate
            and takes(pod.pod)
            and rules_changed(queue.profile, candidate, pod.unschedulable_plugins)
        ]
    for queued in refused:
        queue.detach(queued)
    queue.set_candidate(candidate)
    for queued in refused:
        queued.by_candidate = False
        queue.requeue(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
    queue.in_flight.record(Happening(POLICY_REPLACED, None, None))


def rules_changed(before: Profile, after: Profile, names: frozenset[str]) -> bool:
    """Whether one of the plugins or rules of these names has changed. True for no names: an error, or a refusal by no
    plugin in particular."""
    return not names or any(_changed(before, after, name) for name in names)


def queue_changed(before: Profile, after: Profile) -> bool:
    """Whether pods may have to wait elsewhere or in another order; True if unknown."""
    ours, theirs = before.fingerprints, after.fingerprints
    return ours is None or theirs is None or ours.queue != theirs.queue


def _changed(before: Profile, after: Profile, name: str) -> bool:
    ours, theirs = before.fingerprints, after.fingerprints
    if ours is not None and theirs is not None:
        return ours.rules.get(name, ours.queue) != theirs.rules.get(name, theirs.queue)
    old, new = ([plugin for plugin in profile.plugins() if plugin.name == name] for profile in (before, after))
    return len(old) != len(new) or not all(map(_equal, old, new))


def _equal(before: Plugin, after: Plugin) -> bool:
    """Without a profile's fingerprints: plugins of one type with the same `fingerprint` or the same arguments."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    fingerprint = getattr(before, "fingerprint", None)
    if fingerprint is not None:
        return bool(fingerprint == getattr(after, "fingerprint", None))
    arguments = getattr(before, "__dict__", None)
    return before == after or (arguments is not None and arguments == getattr(after, "__dict__", None))
