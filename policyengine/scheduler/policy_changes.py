"""Policies come, change and go between two cycles; no pod is lost over it.

- A new one takes over the pods that wait for its scheduler name already.
- A changed one re-keys its queue and wakes only the pods whose refusing rule changed or vanished. Decisions under
  way keep the policy they were made by.
- Where one is removed its pods wait, in their places, for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyengine.cluster.pod_info import PodState
from policyengine.scheduler.core import Core
from policyengine.scheduler.extenders.ignored_resources import leave_to
from policyengine.scheduler.messages import ProfileRemoved, ProfileReplaced
from policyengine.scheduler.profiles import Lane, Serving

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def profile_replaced(core: Core, message: ProfileReplaced) -> None:
    """A policy was loaded or replaced."""
    profile = leave_to(core.extenders, message.profile)
    lane = core.lanes.get(profile.scheduler_name)
    if lane is not None:
        lane.serving = Serving(profile)
        lane.is_served = True
        if lane.rollout is not None:
            lane.rollout.start_over()
        lane.queue.replace_profile(profile, _members(core, profile.scheduler_name), core.now)
        return
    lane = Lane.of(profile, core.story, core.now, core.view, core.aftermath)
    core.lanes.add(lane)
    members = list(_members(core, profile.scheduler_name))
    for pod in members:
        lane.queue.gangs.observe(pod, core.now)
    for pod in members:
        if pod.state is PodState.PENDING:
            lane.queue.add(pod, core.now)


def _members(core: Core, scheduler_name: str) -> Iterator[PodInfo]:
    """The pods of the scheduler name. One on its way out before it was bound is no member of anything."""
    for pod in core.view.pods.values():
        if pod.scheduler_name == scheduler_name and (pod.state is PodState.BOUND or not pod.deleting):
            yield pod


def profile_removed(core: Core, message: ProfileRemoved) -> None:
    """No policy serves the scheduler name any more."""
    lane = core.lanes.get(message.scheduler_name)
    if lane is None or not lane.is_served:
        return
    lane.is_served = False
    for queued in lane.queue:
        core.story.tell(queued.uid, core.now, "unserved", message.scheduler_name)
