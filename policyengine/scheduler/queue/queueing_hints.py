"""Queueing hints: which refused pods an event may help. Only the plugins that refused a pod are asked about it.

Rules (kube-scheduler's `isPodWorthRequeuing`, backend/queue/scheduling_queue.go, v1.36):
1. An event is put to a pod only by plugins that refused the pod and registered for the event.
2. A hint of QUEUE, no hint function, or a hint function that fails wakes the pod: at once if the plugin had said
   Pending, else after its backoff. If every hint says SKIP the pod stays. (A needless attempt does no harm; a pod that
   is not woken is stranded.)
3. A pod refused by no plugin in particular wakes by any event, after its backoff.
4. A wildcard event wakes the pod whose attempt it falls into.

A name may stand for several: a policy's rules of different kinds, as one plugin of kube-scheduler has several extension
points. All of one name are asked about whom one of them refused.

Pods refused by one plugin with one signature (what the plugin reads of the pod) share a bucket, and a hint function is
called once a bucket: it must be a function of the signature and of the objects involved. A plugin whose hints look at
more of the pod says by what its pods wait together (`waits_with`). An event that nobody registered for costs one
look-up, however many pods are refused.

Example: 500 identical pods and one larger pod were refused by NodeResourcesFit: two buckets. A node with 2 cpu comes.
The hint function is called twice; it says QUEUE for the identical pods, which all wake, and SKIP for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from policyengine.framework.events import ClusterEvent, QueueingHint, QueueingHintFn, Resource
from policyengine.framework.profile import GROUP_PLACEMENT, Profile
from policyengine.scheduler.queue.queued_pods import QueuedPod, Strategy

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

Hints = tuple[QueueingHintFn | None, ...]
RESERVED_ROOM = "KeptRoom"
"""Under this name a pod is refused room that is reserved for a gang."""
_ANYBODY = ""
"""The bucket of pods whose refusal names no plugin that this profile knows."""


class UnschedulableIndex:
    """The refused pods of one queue, by refusing plugin and signature."""

    __slots__ = ("_by_event", "_known", "_profile", "_signatures", "buckets")

    def __init__(self, profile: Profile) -> None:
        self.buckets: dict[str, dict[Hashable, dict[str, QueuedPod]]] = {}
        """Plugin -> signature -> the pods, by UID; never empty ones."""
        self.replace_profile(profile)

    def replace_profile(self, profile: Profile) -> None:
        """Ask this profile's plugins from now on; pods already here are to be added again by the caller."""
        # A gang refuses pods and registers for nothing: they move with it, or, of kept room, when that is free again.
        self._signatures: dict[str, list[Callable[[PodInfo], Hashable]]] = {
            name: [] for name in (RESERVED_ROOM, GROUP_PLACEMENT, *(rule.name for rule in profile.gangs))
        }
        for plugin in {id(one): one for one in profile.plugins()}.values():
            signatures = self._signatures.setdefault(plugin.name, [])
            if plugin.events_to_register():
                signatures.append(getattr(plugin, "waits_with", getattr(plugin, "signature", _of_itself)))
        self._profile = profile
        self._known = frozenset(self._signatures)
        self._by_event: dict[ClusterEvent, dict[str, Hints]] = {}
        self.buckets.clear()

    def add(self, pod: QueuedPod, plugins: frozenset[str]) -> None:
        """The pod waits for an event that one of these plugins registered."""
        if not plugins or not plugins <= self._known:
            plugins = frozenset({_ANYBODY}) | (plugins & self._known)
        pod.buckets = tuple((plugin, self._signature(plugin, pod)) for plugin in sorted(plugins))
        for plugin, signature in pod.buckets:
            self.buckets.setdefault(plugin, {}).setdefault(signature, {})[pod.uid] = pod

    def remove(self, pod: QueuedPod) -> None:
        """The pod waits no more."""
        for plugin, signature in pod.buckets:
            buckets = self.buckets[plugin]
            del buckets[signature][pod.uid]
            if not buckets[signature]:
                del buckets[signature]
            if not buckets:
                del self.buckets[plugin]
        pod.buckets = ()

    def asks_for(self, event: ClusterEvent) -> bool:
        """Whether a plugin that has refused a pod here registered for the event."""
        interested = self._interested(event)
        return any(plugin in interested or _is_any(plugin, event) for plugin in self.buckets)

    def woken_by(self, event: ClusterEvent, old: Any, new: Any) -> list[tuple[QueuedPod, Strategy, str]]:
        """The pods the event may help, how they are to move, and the plugin that asked for it."""
        interested = self._interested(event)
        woken: dict[str, tuple[QueuedPod, Strategy, str]] = {}
        for plugin, buckets in self.buckets.items():
            hints = (None,) if _is_any(plugin, event) else interested.get(plugin)
            if hints is None:
                continue
            for bucket in buckets.values():
                asked_by = wakes(plugin, hints, next(iter(bucket.values())), old, new)
                for pod in bucket.values() if asked_by is not None else ():
                    strategy = Strategy.IMMEDIATELY if plugin in pod.pending_plugins else Strategy.AFTER_BACKOFF
                    before = woken.get(pod.uid)
                    if before is None or strategy.value > before[1].value:
                        woken[pod.uid] = (pod, strategy, asked_by or "")
        return list(woken.values())

    def refused_by(self, plugin: str) -> list[QueuedPod]:
        """The pods here that the plugin refused."""
        return [pod for bucket in self.buckets.get(plugin, {}).values() for pod in bucket.values()]

    def pods(self) -> list[QueuedPod]:
        """The pods here."""
        found = {pod.uid: pod for plugin in self.buckets for pod in self.refused_by(plugin)}
        return list(found.values())

    def hint(self, pod: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> tuple[Strategy, str]:
        """What the event does to this one pod, which need not be here, and the plugin that asked for it."""
        refused_by = pod.unschedulable_plugins
        if not refused_by:
            return Strategy.AFTER_BACKOFF, ""
        if event.resource is Resource.WILDCARD:
            return Strategy.AFTER_BACKOFF, ""
        found, asked_by = (Strategy.SKIP if refused_by <= self._known else Strategy.AFTER_BACKOFF), ""
        interested = self._interested(event)
        for plugin in sorted(refused_by):
            woken_by = wakes(plugin, interested.get(plugin, ()), pod, old, new)
            if woken_by is None:
                continue
            if plugin in pod.pending_plugins:
                return Strategy.IMMEDIATELY, woken_by
            found, asked_by = Strategy.AFTER_BACKOFF, woken_by
        return found, asked_by

    def _interested(self, event: ClusterEvent) -> dict[str, Hints]:
        """The plugins that registered for the event, with their hint functions; computed once a kind of event."""
        found = self._by_event.get(event)
        if found is None:
            registered = {name: self._profile.events_of(name) for name in sorted(self._known)}
            matching = {
                name: tuple(one.hint for one in ours if one.event.matches(event)) for name, ours in registered.items()
            }
            found = self._by_event[event] = {name: hints for name, hints in matching.items() if hints}
        return found

    def _signature(self, plugin: str, pod: QueuedPod) -> Hashable:
        """A plugin that cannot say what it reads has a bucket for each pod; a failure shows at its next attempt."""
        try:
            found = tuple([signature(pod.pod) for signature in self._signatures.get(plugin, ())])
            hash(found)
        except Exception:
            return pod.uid
        return found


def _of_itself(pod: PodInfo) -> Hashable:
    return pod.uid


def _is_any(plugin: str, event: ClusterEvent) -> bool:
    """Whether pods that no plugin in particular refused move by the event; by the passing of time they do not."""
    return plugin == _ANYBODY and event.resource is not Resource.TIME


def wakes(plugin: str, hints: Hints, pod: QueuedPod, old: Any, new: Any) -> str | None:
    """Who wakes the pod, for its timeline: the plugin, with what went wrong if its hint function failed; None if every
    hint says SKIP. Rule 2."""
    for hint in hints:
        try:
            if hint is None or hint(pod.pod, old, new) is QueueingHint.QUEUE:
                return plugin
        except Exception as failure:
            return f"{plugin}, whose hint failed: {str(failure) or type(failure).__name__}"
    return None
