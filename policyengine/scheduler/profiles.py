"""One lane a scheduler name: its policy, its evaluator, its queue; and whose turn it is.

Rules:
1. A lane whose policy was removed keeps its queue and is not served; its pods wait until another policy comes.
2. Among lanes with active pods turns go by `share`: of any `n · Σ share` consecutive turns in which the same lanes
   had work, a lane got `n · share`, evenly spread (smooth weighted round robin).
3. Only where no lane has an active pod may one take a pod out of backoff before its time, by the same turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.plugin import SelectivePlugin, extends
from policyengine.framework.post_filter import PostFilterPlugin
from policyengine.framework.profile import Profile
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin
from policyengine.scheduler.pod_timeline import Story
from policyengine.scheduler.queue.deferred_work import Aftermath
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue

if TYPE_CHECKING:
    from policyengine.cluster.pod_shape import PodShape
    from policyengine.scheduler.rollout.candidate import Rollout


class Serving:
    """One profile at work. A decision keeps the one it was made by, whatever is loaded meanwhile."""

    __slots__ = (
        "_needed",
        "_needed_by",
        "evaluator",
        "has_logs",
        "permit",
        "policy_hash",
        "post_filters",
        "pre_bind",
        "profile",
        "reserve",
    )

    def __init__(self, profile: Profile) -> None:
        """TypeError for a plugin without its extension point's methods."""
        self.profile = profile
        self.policy_hash = profile.policy_hash
        self.evaluator = Evaluator(profile)
        self.post_filters = [_as_post_filter(plugin) for plugin in profile.post_filters]
        self.reserve = [_as_reserve(plugin) for plugin in profile.reserve]
        self.permit = [_as_permit(plugin) for plugin in profile.permit]
        self.pre_bind = [_as_pre_bind(plugin) for plugin in profile.pre_bind]
        self.has_logs = bool(profile.logs)
        """Whether the policy has something logged, at whatever extension point."""
        self._needed: tuple[list[ReservePlugin], list[PreBindPlugin]] = [], []
        self._needed_by: PodShape | None = None

    def needed_by(self, shape: PodShape) -> tuple[list[ReservePlugin], list[PreBindPlugin]]:
        """The Reserve and the PreBind plugins that may have something to do for pods of this shape; kept for the next
        pod of a run."""
        if shape is not self._needed_by:
            reserve = [plugin for plugin in self.reserve if _concerns(plugin, shape)]
            self._needed = reserve, [plugin for plugin in self.pre_bind if _concerns(plugin, shape)]
            self._needed_by = shape
        return self._needed


class Lane:
    """What serves the pods of one scheduler name."""

    __slots__ = ("credit", "is_served", "queue", "rollout", "serving")

    def __init__(self, serving: Serving, queue: SchedulingQueue) -> None:
        self.serving = serving
        self.queue = queue
        self.is_served = True
        self.credit = 0
        self.rollout: Rollout | None = None
        """A policy that is tried beside the one that serves."""

    @classmethod
    def of(cls, profile: Profile, story: Story, now: float, view: ClusterView, aftermath: Aftermath) -> Lane:
        """A lane with a queue of its own."""
        return cls(Serving(profile), SchedulingQueue(profile, story, now, view, aftermath))

    def beside(self, profile: Profile) -> Lane:
        """A lane over the same queue in which another policy decides; its cycles are run when this one says so."""
        return Lane(Serving(profile), self.queue)

    @property
    def has_work(self) -> bool:
        """Whether a cycle would find a pod to try."""
        return self.is_served and (self.queue.active > 0 or self.queue.has_early)

    @property
    def scheduler_name(self) -> str:
        """The name by which pods ask for this lane."""
        return self.serving.profile.scheduler_name


class Lanes:
    """The lanes, by scheduler name."""

    __slots__ = ("_by_name", "all")

    def __init__(self) -> None:
        self._by_name: dict[str, Lane] = {}
        self.all: tuple[Lane, ...] = ()
        """In the order in which they came."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(self.all)

    def get(self, scheduler_name: str) -> Lane | None:
        """The lane of the pods with this scheduler name, served or not; None when no policy ever came for them."""
        return self._by_name.get(scheduler_name)

    def add(self, lane: Lane) -> None:
        """A policy came for a new scheduler name."""
        self._by_name[lane.scheduler_name] = lane
        self.all = tuple(self._by_name.values())

    def tries_candidates(self) -> bool:
        """Whether a policy is being tried beside the one that serves."""
        return any(lane.rollout is not None and lane.rollout.is_tried for lane in self.all)

    def has_work(self) -> bool:
        """Whether a cycle would find a pod to try."""
        return any(lane.has_work for lane in self.all)

    def next_turn(self) -> Lane | None:
        """The lane that may try a pod now; None when no lane has one. The only lane there is may have none all the
        same: that is seen when the pod is taken."""
        if len(self.all) == 1:
            lane = self.all[0]
            return lane if lane.is_served else None
        lanes = [lane for lane in self.all if lane.is_served and lane.queue.active]
        if not lanes:
            lanes = [lane for lane in self.all if lane.is_served and lane.queue.has_early]
            if not lanes:
                return None
        return lanes[0] if len(lanes) == 1 else _by_share(lanes)


def _by_share(lanes: list[Lane]) -> Lane:
    total = 0
    for lane in lanes:
        lane.credit += lane.serving.profile.share
        total += lane.serving.profile.share
    chosen = max(lanes, key=lambda lane: lane.credit)
    chosen.credit -= total
    return chosen


def _concerns(plugin: object, shape: PodShape) -> bool:
    return not extends(plugin, SelectivePlugin) or plugin.concerns(shape)


def _as_post_filter(plugin: object) -> PostFilterPlugin:
    if not extends(plugin, PostFilterPlugin):
        raise TypeError(f"`{plugin!r}` is no PostFilter plugin")
    return plugin


def _as_reserve(plugin: object) -> ReservePlugin:
    if not extends(plugin, ReservePlugin):
        raise TypeError(f"`{plugin!r}` is no Reserve plugin")
    return plugin


def _as_permit(plugin: object) -> PermitPlugin:
    if not extends(plugin, PermitPlugin):
        raise TypeError(f"`{plugin!r}` is no Permit plugin")
    return plugin


def _as_pre_bind(plugin: object) -> PreBindPlugin:
    if not extends(plugin, PreBindPlugin):
        raise TypeError(f"`{plugin!r}` is no PreBind plugin")
    return plugin
