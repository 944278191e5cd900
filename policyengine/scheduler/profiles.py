"""The profiles: for each scheduler name its policy at work, its scheduling queue, and whose turn it is.

Rules:
1. A profile whose policy was removed keeps its queue and is not served; its pods wait until another policy comes.
2. Turns go by `share` among the profiles with active pods (smooth weighted round robin): of any `n · Σ share`
   consecutive turns in which the same profiles had work, a profile got `n · share`, evenly spread.
3. Only if no profile has an active pod may one take a pod out of backoff before its time, by the same turns.

Example of rule 2: with shares a: 2 and b: 1 the turns are a, b, a, a, b, a, …
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from policyengine.cluster.pod_info import PodState
from policyengine.cluster.scheduling_status import GangStatus, PlacedGang
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.plugin import SelectivePlugin, extends
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin
from policyengine.scheduler.queue.queued_pod import Place
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.rollout.candidate import Rollout

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.pod_shape import PodShape
    from policyengine.scheduler.gangs.gang import Gang

T = TypeVar("T")


class ProfileRuntime:
    """One policy at work: its evaluator and its plugins. A decision keeps the one that made it."""

    def __init__(self, profile: Profile) -> None:
        """TypeError for a plugin without its extension point's methods."""
        self.profile = profile
        self.policy_hash = profile.policy_hash
        self.evaluator = Evaluator(profile)
        self.post_filters = _all_extend(profile.post_filters, PostFilterPlugin, "PostFilter")
        self.reserve = _all_extend(profile.reserve, ReservePlugin, "Reserve")
        self.permit = _all_extend(profile.permit, PermitPlugin, "Permit")
        self.pre_bind = _all_extend(profile.pre_bind, PreBindPlugin, "PreBind")
        self.has_logs = bool(profile.logs)
        """Whether the policy logs something, at whatever extension point."""
        self._needed: tuple[list[ReservePlugin], list[PreBindPlugin]] = [], []
        self._needed_by: PodShape | None = None

    def needed_by(self, shape: PodShape) -> tuple[list[ReservePlugin], list[PreBindPlugin]]:
        """The Reserve and the PreBind plugins that may have something to do for pods of this shape."""
        if shape is not self._needed_by:
            reserve = [plugin for plugin in self.reserve if _concerns(plugin, shape)]
            self._needed = reserve, [plugin for plugin in self.pre_bind if _concerns(plugin, shape)]
            self._needed_by = shape
        return self._needed


class ServedProfile:
    """What serves the pods of one scheduler name."""

    def __init__(self, runtime: ProfileRuntime, queue: SchedulingQueue) -> None:
        self.runtime = runtime
        self.queue = queue
        self.is_served = True
        self.credit = 0
        """Rule 2: turns that are due to it, in shares."""
        self.rollout: Rollout | None = None
        """A candidate policy beside the one that serves."""
        self.candidate: ServedProfile | None = None
        """The candidate's runtime over this queue: it runs the cycles of a canary's pods."""

    @property
    def has_work(self) -> bool:
        """Whether a cycle would find a pod to try."""
        return self.is_served and (self.queue.active > 0 or self.queue.has_early)

    @property
    def scheduler_name(self) -> str:
        """The name by which pods ask for this profile."""
        return self.runtime.profile.scheduler_name


class ServedProfiles:
    """The profiles, by scheduler name. For the cluster view they are also its `QueueStatus` and its `GangIndex`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._by_name: dict[str, ServedProfile] = {}
        self.all: tuple[ServedProfile, ...] = ()
        """In the order in which they came."""

    def __iter__(self) -> Iterator[ServedProfile]:
        return iter(self.all)

    def get(self, scheduler_name: str) -> ServedProfile | None:
        """The profile of this scheduler name, served or not; None if no policy ever came for it."""
        return self._by_name.get(scheduler_name)

    def add(self, served: ServedProfile) -> None:
        """A policy came for a new scheduler name."""
        self._by_name[served.scheduler_name] = served
        self.all = tuple(self._by_name.values())

    def has_work(self) -> bool:
        """Whether a cycle would find a pod to try."""
        return any(served.has_work for served in self.all)

    def next_turn(self) -> ServedProfile | None:
        """The profile that may try a pod now; None if none has one."""
        served = [one for one in self.all if one.is_served]
        ready = [one for one in served if one.queue.active] or [one for one in served if one.queue.has_early]
        return ready[0] if len(ready) == 1 else _by_share(ready) if ready else None

    # ---- `cluster.scheduling_status.QueueStatus`

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """Since when the pod waits, and how often it was tried before the attempt under way."""
        served = self.get(pod.scheduler_name)
        queued = None if served is None else served.queue.get(pod.uid)
        return None if queued is None else (queued.queued_at, queued.attempts - (queued.place is Place.IN_FLIGHT))

    def gang(self, pod: PodInfo) -> GangStatus | None:
        """The pod's gang; placed members count as reserved until the server has bound them."""
        gang = self._gang_of(pod)
        if gang is None:
            return None
        pods = self._view.pods
        bound = sum(1 for uid in gang.placed if uid in pods and pods[uid].state is PodState.BOUND)
        return GangStatus(gang.key, len(gang.members), len(gang.placed) - bound, bound, gang.minimum)

    # ---- `cluster.scheduling_status.GangIndex`: gangs of more than one

    def of(self, uid: str) -> PlacedGang | None:
        """The pod's gang; None for a pod that has none."""
        gang = self._gang_of(self._view.pods.get(uid))
        return PlacedGang(gang.placed, gang.minimum) if gang is not None and gang.minimum > 1 else None

    def placed(self) -> Iterator[str]:
        """UIDs of all pods that have a node and a gang."""
        return (uid for served in self.all for gang in served.queue.gangs if gang.minimum > 1 for uid in gang.placed)

    def _gang_of(self, pod: PodInfo | None) -> Gang | None:
        served = None if pod is None else self.get(pod.scheduler_name)
        return None if pod is None or served is None else served.queue.gangs.of(pod.uid)


def _by_share(ready: list[ServedProfile]) -> ServedProfile:
    for served in ready:
        served.credit += served.runtime.profile.share
    chosen = max(ready, key=lambda served: served.credit)
    chosen.credit -= sum(served.runtime.profile.share for served in ready)
    return chosen


def _concerns(plugin: object, shape: PodShape) -> bool:
    return not extends(plugin, SelectivePlugin) or plugin.concerns(shape)


def _all_extend(plugins: tuple[Any, ...], protocol: type[T], point: str) -> list[T]:
    for plugin in plugins:
        if not extends(plugin, protocol):
            raise TypeError(f"`{plugin!r}` is no {point} plugin")
    return list(plugins)
