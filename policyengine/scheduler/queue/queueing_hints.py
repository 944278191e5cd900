"""Which refused pods an event may help: asked of the plugins that refused them, and of nobody else.

Rules (kube-scheduler's `isPodWorthRequeuing`, backend/queue/scheduling_queue.go, v1.36):
1. An event is put to a pod only by plugins that refused the pod and registered for the event.
2. A hint of QUEUE, no hint function, or a hint function that fails wakes the pod: at once where the plugin had
   said Pending, else after its backoff. If every hint says SKIP the pod stays.
3. A pod refused by nobody in particular wakes by any event, after its backoff.
4. A wildcard event with a pod in it is meant for that pod alone.

Pods refused by one plugin with one signature (what the plugin reads of the pod) share a bucket, and a hint is
asked once a bucket: a hint function must be a function of the signature and the objects involved. An event
nobody registered for costs one look-up, however many pods are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

from policyengine.framework.events import ClusterEvent, QueueingHint, QueueingHintFn, Resource
from policyengine.framework.profile import Profile
from policyengine.scheduler.queue.queued_pod import QueuedPod, Strategy

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

Hints = tuple[QueueingHintFn | None, ...]
KEPT_ROOM = "KeptRoom"
"""Who refuses a pod the room that is being kept for a gang."""
_ANYBODY = ""
"""The bucket of pods whose refusal names no plugin that this profile knows."""


class Registrations:
    """Who registered for what in one profile. An answer is worked out once for each kind of event."""

    __slots__ = ("_by_event", "_profile", "known")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.known = frozenset(plugin.name for plugin in profile.plugins()) | _riders(profile)
        self._by_event: dict[ClusterEvent, dict[str, Hints]] = {}

    def interested(self, event: ClusterEvent) -> dict[str, Hints]:
        """The plugins that registered for the event, with their hint functions for it."""
        found = self._by_event.get(event)
        if found is None:
            found = self._by_event[event] = {
                name: hints for name in sorted(self.known) if (hints := self._hints(name, event))
            }
        return found

    def _hints(self, plugin: str, event: ClusterEvent) -> Hints:
        registered = self._profile.events_of(plugin)
        return tuple(one.hint for one in registered if one.event.matches(event))


class WakeUps:
    """The refused pods of one queue, by refusing plugin and signature."""

    __slots__ = ("_buckets", "_registrations", "_signatures")

    def __init__(self, profile: Profile) -> None:
        self._buckets: dict[str, dict[Hashable, dict[str, QueuedPod]]] = {}
        self.replace_profile(profile)

    def replace_profile(self, profile: Profile) -> None:
        """Ask this profile's plugins from now on; pods already here are to be added again by the caller."""
        self._registrations = Registrations(profile)
        self._signatures: dict[str, Callable[[PodInfo], Hashable]] = {
            plugin.name: plugin.signature for plugin in profile.filters
        }
        self._signatures.update({rule.name: rule.signature for rule in profile.quotas.rules})
        self._signatures.update(dict.fromkeys(_riders(profile), _one_bucket))
        self._buckets.clear()

    def add(self, pod: QueuedPod, plugins: frozenset[str]) -> None:
        """The pod waits for an event that one of these plugins registered."""
        known = self._registrations.known
        if not plugins or not plugins <= known:
            plugins = frozenset({_ANYBODY}) | (plugins & known)
        places = [(plugin, self._signature(plugin, pod)) for plugin in sorted(plugins)]
        pod.buckets = tuple(places)
        for plugin, signature in places:
            self._buckets.setdefault(plugin, {}).setdefault(signature, {})[pod.uid] = pod

    def remove(self, pod: QueuedPod) -> None:
        """The pod waits no more."""
        for plugin, signature in pod.buckets:
            buckets = self._buckets[plugin]
            bucket = buckets[signature]
            del bucket[pod.uid]
            if not bucket:
                del buckets[signature]
                if not buckets:
                    del self._buckets[plugin]
        pod.buckets = ()

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether a plugin that has refused a pod waiting here asked for the event."""
        interested = self._registrations.interested(event)
        return any(plugin in interested or _is_any(plugin, event) for plugin in self._buckets)

    def woken_by(self, event: ClusterEvent, old: Any, new: Any) -> list[tuple[QueuedPod, Strategy, str]]:
        """The pods the event may help, how they are to move, and the plugin that asked for it."""
        if not self._buckets:
            return []
        interested = self._registrations.interested(event)
        woken: dict[str, tuple[QueuedPod, Strategy, str]] = {}
        for plugin, buckets in self._buckets.items():
            hints = (None,) if _is_any(plugin, event) else interested.get(plugin)
            if hints is None:
                continue
            for pod in _asked(buckets, hints, old, new):
                strategy = Strategy.IMMEDIATELY if plugin in pod.pending_plugins else Strategy.AFTER_BACKOFF
                before = woken.get(pod.uid)
                if before is None or strategy.value > before[1].value:
                    woken[pod.uid] = (pod, strategy, plugin)
        return list(woken.values())

    def refused_by(self, plugin: str) -> list[QueuedPod]:
        """The pods here that the plugin refused."""
        return [pod for bucket in self._buckets.get(plugin, {}).values() for pod in bucket.values()]

    def pods(self) -> list[QueuedPod]:
        """The pods here."""
        found = {
            uid: pod for buckets in self._buckets.values() for bucket in buckets.values() for uid, pod in bucket.items()
        }
        return list(found.values())

    def verdict(self, pod: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> tuple[Strategy, str]:
        """What the event does to this one pod, and the plugin that asked for it."""
        refused_by = pod.unschedulable_plugins
        if not refused_by:
            return Strategy.AFTER_BACKOFF, ""
        if event.resource is Resource.WILDCARD:
            meant = new is None or getattr(new, "uid", None) == pod.uid
            return (Strategy.AFTER_BACKOFF if meant else Strategy.SKIP), ""
        found, asked_by = Strategy.SKIP, ""
        interested = self._registrations.interested(event)
        if not refused_by <= self._registrations.known:
            found = Strategy.AFTER_BACKOFF
        for plugin in sorted(refused_by):
            hints = interested.get(plugin)
            if hints is None or not _says_queue(hints, pod, old, new):
                continue
            if plugin in pod.pending_plugins:
                return Strategy.IMMEDIATELY, plugin
            found, asked_by = Strategy.AFTER_BACKOFF, plugin
        return found, asked_by

    def asks_for(self, plugin: str, event: ClusterEvent) -> bool:
        """Whether the plugin registered for the event."""
        return plugin in self._registrations.interested(event)

    def _signature(self, plugin: str, pod: QueuedPod) -> Hashable:
        signature = self._signatures.get(plugin)
        if signature is None:
            return None if plugin == _ANYBODY else pod.uid
        try:
            found = signature(pod.pod)
            hash(found)
        except Exception:
            # A plugin that cannot say what it reads gets a bucket of its own for each pod.
            return pod.uid
        return found


def _riders(profile: Profile) -> frozenset[str]:
    """Names that refuse pods and register for nothing: such a pod moves with its gang, or when room that was kept for
    one is given up."""
    return frozenset(rule.name for rule in profile.gangs) | {KEPT_ROOM}


def _one_bucket(pod: PodInfo) -> Hashable:
    return None


def _is_any(plugin: str, event: ClusterEvent) -> bool:
    """Whether pods that nobody in particular refused move by the event; by the passing of time they do not."""
    return plugin == _ANYBODY and event.resource is not Resource.TIME


def _asked(buckets: dict[Hashable, dict[str, QueuedPod]], hints: Hints, old: Any, new: Any) -> Iterator[QueuedPod]:
    for bucket in buckets.values():
        spokesman = next(iter(bucket.values()))
        if _says_queue(hints, spokesman, old, new):
            yield from bucket.values()


def _says_queue(hints: Hints, pod: QueuedPod, old: Any, new: Any) -> bool:
    for hint in hints:
        if hint is None:
            return True
        try:
            if hint(pod.pod, old, new) is QueueingHint.QUEUE:
                return True
        except Exception:
            # Rule 2: staying would strand the pod, one attempt more does no harm.
            return True
    return False
