"""The profiles: for each scheduler name its policy at work and its scheduling queue.

A profile whose policy was removed keeps its queue and is not served; its pods wait until another policy comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.scheduling_status import GangStatus, PlacedGang, SchedulingStatus
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.plugin import extends
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import Place
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.rollout import Rollout

T = TypeVar("T")
VERSIONS: Final = 20
"""Policies of one scheduler name, one after the other, that are remembered."""


class ProfileRuntime:
    """One policy at work: its evaluator and its plugins. A decision keeps the one that made it."""

    def __init__(self, profile: Profile) -> None:
        """TypeError for a plugin without its extension point's methods."""
        self.profile = profile
        self.policy_hash = profile.policy_hash
        self.policy = f"{profile.name}@{profile.policy_hash[:12]}"
        """Its name in events."""
        self.evaluator = Evaluator(profile)
        self.post_filters = _all_extend(profile.post_filters, PostFilterPlugin, "PostFilter")
        self.reserve = _all_extend(profile.reserve, ReservePlugin, "Reserve")
        self.permit = _all_extend(profile.permit, PermitPlugin, "Permit")
        self.pre_bind = _all_extend(profile.pre_bind, PreBindPlugin, "PreBind")


class Version(NamedTuple):
    """A policy that began to serve."""

    since: float
    """Seconds since the epoch; 0.0 for one that served from the start."""
    policy: str
    policy_hash: str


class ServedProfile:
    """What serves the pods of one scheduler name."""

    def __init__(self, runtime: ProfileRuntime, queue: SchedulingQueue) -> None:
        self.runtime = runtime
        self.scheduler_name = runtime.profile.scheduler_name
        self.queue = queue
        self.is_served = True
        self.credit = 0
        """Turns that are due to it, in shares (`cycle.next_turn`)."""
        self.rollout: Rollout | None = None
        """A candidate policy beside the one that serves."""
        self.versions: deque[Version] = deque(maxlen=VERSIONS)
        """The policies that served, the last one last."""
        self.candidate: ServedProfile | None = None
        """The candidate's runtime over this queue: it runs the cycles of a canary's pods."""


class ServedProfiles(dict[str, ServedProfile], SchedulingStatus):
    """The profiles, by scheduler name, in the order in which they came; and what they tell the cluster view of pods."""

    def __init__(self, view: ClusterView) -> None:
        super().__init__()
        self._view = view

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """Since when the pod waits, and how often it was tried before the attempt under way."""
        served = self.get(pod.scheduler_name)
        queued = None if served is None else served.queue.pods.get(pod.uid)
        return None if queued is None else (queued.queued_at, queued.attempts - (queued.place is Place.IN_FLIGHT))

    def gang(self, pod: PodInfo) -> GangStatus | None:
        """The pod's gang; placed members count as reserved until the server has bound them."""
        gang = self._gang_of(pod)
        if gang is None:
            return None
        pods = self._view.pods
        bound = sum(1 for uid in gang.placed if uid in pods and pods[uid].state is PodState.BOUND)
        others = len(gang.elsewhere)
        size = len(gang.members) + others + len(gang.awaited)
        return GangStatus(gang.key, size, len(gang.placed) - bound, bound + others, gang.wanted)

    def members(self, pod: PodInfo) -> Collection[str]:
        """UIDs of all members of the pod's gang, in the order in which they came."""
        gang = self._gang_of(pod)
        return () if gang is None else gang.members.keys()

    def placed_gang(self, uid: str) -> PlacedGang | None:
        """The pod's gang; None for a pod that has none, or one of its own."""
        gang = self._gang_of(self._view.pods.get(uid))
        return PlacedGang(gang.placed, gang.minimum) if gang is not None and gang.minimum > 1 else None

    def placed(self) -> Iterator[str]:
        """UIDs of all pods that have a node and a gang of more than one."""
        return (
            uid for served in self.values() for gang in served.queue.gangs if gang.minimum > 1 for uid in gang.placed
        )

    def giving_way(self, pod: PodInfo) -> frozenset[str]:
        """UIDs of the pods whose gang, bound in part for its timeout, is to give way to the pod's: docs/gangs.md."""
        mine = self._gang_of(pod)
        if mine is None or not self._is_stuck(mine):
            return frozenset()
        turn = self._turn(mine)
        gangs = (gang for served in self.values() for gang in served.queue.gangs)
        late = [gang for gang in gangs if gang.overdue_at <= self._view.now and self._is_stuck(gang)]
        return frozenset(uid for gang in late if self._turn(gang) > turn for uid in gang.placed)

    def _is_stuck(self, gang: Gang) -> bool:
        """Whether some members are bound, and those that are missing were refused."""
        if gang.refused_since is None or not gang.is_complete or not 0 < len(gang.placed) < gang.minimum:
            return False
        pods = self._view.pods
        return all(uid in pods and pods[uid].state is PodState.BOUND for uid in gang.placed)

    def _turn(self, gang: Gang) -> tuple[object, ...]:
        """Of two stuck gangs the one with the larger turn gives way. No two gangs have the same."""
        pods = [pod for uid in gang.members if (pod := self._view.pods.get(uid)) is not None]
        priority = max(pod.priority for pod in pods)
        return -priority, gang.waits is None, gang.refused_since, pods[0].scheduler_name, gang.rule, gang.key

    def _gang_of(self, pod: PodInfo | None) -> Gang | None:
        served = None if pod is None else self.get(pod.scheduler_name)
        return None if pod is None or served is None else served.queue.gangs.of(pod.uid)


def _all_extend(plugins: tuple[Any, ...], protocol: type[T], point: str) -> list[T]:
    for plugin in plugins:
        if not extends(plugin, protocol):
            raise TypeError(f"`{plugin!r}` is no {point} plugin")
    return list(plugins)
