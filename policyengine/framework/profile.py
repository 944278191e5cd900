"""A profile: the plugins and rules that decide for one scheduler name, in the order in which they are asked.

Immutable. The compiler makes one from a policy, `plugins.registry.default_profile` makes kube-scheduler's own;
the core, `explain`, the simulator and the extender all run whatever profile they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, Resource
from policyengine.framework.placed import AnnotationRule, BindPlugin, LogRule, PostBindPlugin
from policyengine.framework.plugin import FilterPlugin, Plugin, PreEnqueuePlugin, ScorePlugin
from policyengine.framework.quota import NO_QUOTAS, Quotas
from policyengine.framework.reservation import PermitPlugin, PreBindPlugin, ReservePlugin

GROUP_PLACEMENT: Final = "TopologyPlacementGenerator"
"""What refuses pods of a group that fits in no domain of its topology constraint, by kube-scheduler's name: no plugin
here (`gangs.topology_placement`)."""
_NODES_REGROUPED: Final = (
    ClusterEventWithHint(ClusterEvent(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
)


class Fingerprints(NamedTuple):
    """Texts that are equal only where what they stand for is the same."""

    queue: str
    """Of the queue: its gates, its order, its gangs and tenants; and of all plugins that are no rules."""
    rules: Mapping[str, str]
    """Of the rules, by name."""


QueueKey = Callable[..., tuple[Any, ...]]
"""(pod, time in epoch seconds at which it entered the queue) -> a key; the smallest is popped first. One that counts
attempts (`Profile.counts_attempts`) takes their number too."""


class LoadedFrom(NamedTuple):
    """What a profile was compiled from; empty for one that no policy's text made."""

    files: Mapping[str, str] = {}
    """The texts of the files that were loaded together, by their names."""
    params: Mapping[str, object] = {}
    """The values given from outside, by the params' full names."""


class VictimRule(NamedTuple):
    """What a preempt rule says for one pod; valid until the view changes."""

    most: int | None
    """How many victims a node may take; None for any number."""
    may_go: Callable[[PodInfo], bool]
    """Whether the victim may have to leave for the pod."""
    turn: Callable[[PodInfo], tuple[Any, ...]]
    """The victim's key in the order of going: smallest first. Equal where the rule says nothing."""


PreemptRule = Callable[[PodInfo, ClusterView], VictimRule | None]
"""Says, beside kube-scheduler's rules, which running pods may make room for a pod and which of them go first; None
where it has nothing to say."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The queue's times, in seconds; kube-scheduler's defaults."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    """0 switches backoff off."""
    flush_after: float = 300.0


@dataclass(frozen=True, slots=True)
class FairShare:
    """Tenants are served by dominant share: of what a tenant's pods use, the largest part of what the cluster has."""

    tenant: Callable[[PodInfo], str]
    """The tenant that a pod belongs to, pending or placed, of any scheduler; "" where it says none."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """A tenant's share is divided by its weight; 1 where none is given."""


class GangRule(Protocol):
    """Which pods belong together, how many of them it takes, and how long a part may wait for the rest."""

    @property
    def name(self) -> str:
        """The rule's name, as it appears in refusals."""

    @property
    def counts_finished(self) -> bool:
        """Whether members that have succeeded count."""

    @property
    def any_scheduler(self) -> bool:
        """Whether pods of other schedulers are members too."""

    def key(self, pod: PodInfo) -> str | None:
        """The gang the pod is a member of; None when it is a member of none."""

    def minimum(self, pod: PodInfo) -> int:
        """How many members this pod asks for; the largest value among the members counts."""

    def timeout(self, pod: PodInfo) -> float:
        """Seconds a partial reservation may last; the shortest value among the members counts."""

    def waits(self, pod: PodInfo) -> float | None:
        """Seconds the gang is to wait for room at most: room is kept for it meanwhile. The shortest value among the
        members counts; None keeps none."""


class RangedParam(NamedTuple):
    """A number that a policy declares a range for. Values in the scheduler's units."""

    name: str
    value: float
    least: float
    most: float
    grain: int
    """Values are told in multiples of this; 0 for a double."""


class Tuning(Protocol):
    """What of a profile can be set from outside, and what its rules ask for: for advice about a refusal."""

    def params(self) -> Iterator[RangedParam]:
        """The numbers that have a range."""

    def text(self, name: str, value: float) -> str | None:
        """The value of a param as one writes it; None where no text stands for it."""

    def tuned(self, name: str, value: float) -> Profile | None:
        """The profile with another value of one param; None where it cannot be had."""

    def labels_read(self, rule: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(of the pod, of the node): the keys of labels that a filter asks for by name."""


def by_priority(pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
    """kube-scheduler's order (PrioritySort): priority descending, longest queued first."""
    return (-pod.priority, queued_at)


@dataclass(frozen=True)
class Profile:
    """Everything that decides about the pods of one scheduler name."""

    name: str
    """The policy's name."""
    scheduler_name: str
    policy_hash: str
    """SHA-256 of the canonical policy text with imports and parameters, in hex."""
    share: int = 1
    """Turns taken at serving the queues, relative to the other profiles."""
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = ()
    quotas: Quotas = NO_QUOTAS
    """Asked before the filters; they take part in preemption too."""
    filters: tuple[FilterPlugin, ...] = ()
    scores: tuple[tuple[ScorePlugin, int], ...] = ()
    """(plugin, weight); the weighted scores add up to a node's total."""
    tiers: frozenset[str] = frozenset()
    """The scores whose weights are more than all that counts less could come to; nor may an extender outweigh them."""
    post_filters: tuple[Plugin, ...] = ()
    preempt: PreemptRule | None = None
    """Narrows whom preemption may choose."""
    reserve: tuple[ReservePlugin, ...] = ()
    permit: tuple[PermitPlugin, ...] = ()
    pre_bind: tuple[PreBindPlugin, ...] = ()
    bind: tuple[BindPlugin, ...] = ()
    post_bind: tuple[PostBindPlugin, ...] = ()
    gangs: tuple[GangRule, ...] = ()
    """The first whose `key` is not None applies to a pod."""
    logs: tuple[LogRule, ...] = ()
    annotations: tuple[AnnotationRule, ...] = ()
    """Written with the binding."""
    queue_key: QueueKey = by_priority
    counts_attempts: bool = False
    """Whether the key is also given how often the pod was tried."""
    fair: FairShare | None = None
    """Which tenant is served first; None: all pods are one's."""
    queue: QueueSettings = field(default_factory=QueueSettings)
    kinds: tuple[str, ...] = ()
    """Kinds of objects that its rules read, beside those that its plugins name."""
    histories: tuple[tuple[str, float], ...] = ()
    """(label, smoothing) of the histories of pods that its rules read."""
    fingerprints: Fingerprints | None = None
    """What its queue and its rules were made from; None where nobody has said."""
    tuning: Tuning | None = field(default=None, compare=False, repr=False)
    """None for a profile that no policy's text made."""

    loaded_from: LoadedFrom = field(default=LoadedFrom(), compare=False, repr=False)

    def plugins(self) -> Iterator[Plugin]:
        """Every plugin of the profile; one that serves several extension points comes several times."""
        yield from self.pre_enqueue
        yield from self.quotas.rules
        yield from self.filters
        yield from (plugin for plugin, _ in self.scores)
        for group in (self.post_filters, self.reserve, self.permit, self.pre_bind, self.bind):
            yield from group

    def events_of(self, plugin_name: str) -> Sequence[ClusterEventWithHint]:
        """The changes that can turn a rejection by the plugin; empty for a name the profile does not know."""
        return self._events.get(plugin_name, ())

    @cached_property
    def _events(self) -> dict[str, tuple[ClusterEventWithHint, ...]]:
        events: dict[str, tuple[ClusterEventWithHint, ...]] = {GROUP_PLACEMENT: _NODES_REGROUPED}
        seen: set[int] = set()
        for plugin in self.plugins():
            if id(plugin) not in seen:
                seen.add(id(plugin))
                events[plugin.name] = events.get(plugin.name, ()) + tuple(plugin.events_to_register())
        return events
