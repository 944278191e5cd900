"""Policies come, change and go between two cycles; no pod is lost over it.

- A new one takes over the pods that wait for its scheduler name already.
- A changed one re-keys its queue and wakes only the pods whose refusing rule changed or vanished. Decisions under
  way keep the policy they were made by.
- Where one is removed its pods wait, in their places, for another.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.framework.profile import Profile
from policyengine.scheduler.core import Core
from policyengine.scheduler.extender import leave_to
from policyengine.scheduler.messages import ProfileRemoved, ProfileReplaced
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile, Version
from policyengine.scheduler.queue import policy_replacement
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue


def profile_replaced(core: Core, message: ProfileReplaced) -> None:
    """A policy was loaded or replaced."""
    profile = leave_to(core.extenders, message.profile)
    for asked in profile.histories:
        core.view.demand.begin(*asked)
    served = core.profiles.get(profile.scheduler_name)
    if served is not None:
        served.runtime = ProfileRuntime(profile)
        served.is_served = True
        _note(served, core.now)
        if served.rollout is not None:
            served.rollout.start_over()
        known = _members(core, profile.scheduler_name)
        policy_replacement.replace_profile(served.queue, profile, known, _others(core, profile), core.now)
        return
    runtime = ProfileRuntime(profile)
    queue = SchedulingQueue(profile, core.timeline, core.view, core.now)
    served = ServedProfile(runtime, queue)
    core.profiles[served.scheduler_name] = served
    _note(served, core.now)
    members = list(_members(core, profile.scheduler_name))
    for pod in members:
        queue.observe_member(pod, core.now)
    for pod in _others(core, profile):
        queue.observe_other(pod, core.now)
    for pod in members:
        if pod.state is PodState.PENDING:
            queue.add(pod, core.now)


def _note(served: ServedProfile, now: float) -> None:
    profile = served.runtime.profile
    if not served.versions or served.versions[-1].policy_hash != profile.policy_hash:
        served.versions.append(Version(now, profile.name, profile.policy_hash))


def _members(core: Core, scheduler_name: str) -> Iterator[PodInfo]:
    """The pods of the scheduler name. One on its way out before it was bound is no member of anything."""
    for pod in core.view.pods.values():
        if pod.scheduler_name == scheduler_name and (pod.state is PodState.BOUND or not pod.deleting):
            yield pod


def _others(core: Core, profile: Profile) -> Iterator[PodInfo]:
    """Pods that the profile's gangs may count though they are not to be placed by it: finished, or another's."""
    if any(rule.counts_finished for rule in profile.gangs):
        yield from core.succeeded.values()
    if any(rule.any_scheduler for rule in profile.gangs):
        for pod in core.view.pods.values():
            if pod.scheduler_name != profile.scheduler_name and (pod.state is PodState.BOUND or not pod.deleting):
                yield pod


def profile_removed(core: Core, message: ProfileRemoved) -> None:
    """No policy serves the scheduler name any more."""
    served = core.profiles.get(message.scheduler_name)
    if served is None or not served.is_served:
        return
    served.is_served = False
    for queued in served.queue.pods.values():
        core.timeline.record(queued.uid, core.now, "unserved", message.scheduler_name)
