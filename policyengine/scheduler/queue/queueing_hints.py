"""Queueing hints: which refused pods an event may help. Only the plugins that refused a pod are asked about it.

Rules (kube-scheduler's `isPodWorthRequeuing`, backend/queue/scheduling_queue.go, v1.36):
1. An event is put to a pod only by plugins that refused the pod and registered for the event.
2. A hint of QUEUE, no hint function, or a hint function that fails wakes the pod: at once if the plugin had said
   Pending, else after its backoff. If every hint says SKIP the pod stays. (A needless attempt does no harm; a pod that
   is not woken is stranded.)
3. A pod refused by no plugin in particular wakes by any event, after its backoff.
4. A wildcard event wakes the pod whose attempt it falls into.
5. A pod that the hint of a filter would wake that judges each node alone stays where this filter, or another such one
   that refused the pod, asked about the node of the event, still refuses it there (`node_verdicts`). As after a refused
   attempt, what it waits for from then on includes that a reservation of now is given back.

A name may stand for several: a policy's rules of different kinds, as one plugin of kube-scheduler has several extension
points. All of one name are asked about whom one of them refused.

Pods refused by one plugin with one signature (what the plugin reads of the pod) share a bucket, and a hint function is
called once a bucket: it must be a function of the signature and of the objects involved. A plugin whose hints look at
more of the pod says by what its pods wait together (`waits_with`). Pods that share all their buckets, and what else is
read of them here, are alike, and one of them is looked at for all. An event that nobody registered for costs one
look-up, however many pods are refused.

Example: 500 identical pods and one larger pod were refused by NodeResourcesFit: two buckets. A node with 2 cpu comes.
The hint function is called twice; it says QUEUE for the identical pods, which all wake, and SKIP for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ClusterEvent, QueueingHint, QueueingHintFn, Resource
from policyengine.framework.profile import GROUP_PLACEMENT, Profile
from policyengine.scheduler.queue.alike_pods import AlikePods
from policyengine.scheduler.queue.node_verdicts import Help, NodeVerdicts
from policyengine.scheduler.queue.queued_pods import QueuedPod, Strategy

Hints = tuple[QueueingHintFn | None, ...]
RESERVED_ROOM = "KeptRoom"
"""Under this name a pod is refused room that is reserved for a gang."""
_ANYBODY = ""
"""The bucket of pods whose refusal names no plugin that this profile knows."""


class Woken(NamedTuple):
    """Pods that are alike and that an event may help."""

    pods: AlikePods
    strategy: Strategy
    """How they are to move."""
    asked_by: str
    """The plugin that says so."""
    help: Help
    """Never `NONE`."""


class UnschedulableIndex:
    """The refused pods of one queue, by refusing plugin and signature."""

    def __init__(self, profile: Profile, view: ClusterView) -> None:
        self._view = view
        self.buckets: dict[str, dict[Hashable, dict[Hashable, AlikePods]]] = {}
        """Plugin -> signature -> what pods that are alike have in common -> these pods; never empty ones."""
        self._alike: dict[Hashable, AlikePods] = {}
        """The same pods, of all buckets."""
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
        self._verdicts = NodeVerdicts(profile, self._view)
        self._known = frozenset(self._signatures)
        self._by_event: dict[ClusterEvent, dict[str, Hints]] = {}
        self.buckets.clear()
        self._alike.clear()

    def add(self, pod: QueuedPod, plugins: frozenset[str]) -> None:
        """The pod waits for an event that one of these plugins registered."""
        if not plugins or not plugins <= self._known:
            plugins = frozenset({_ANYBODY}) | (plugins & self._known)
        pod.buckets = tuple((plugin, self._signature(plugin, pod)) for plugin in sorted(plugins))
        in_gang = bool(self._view.scheduling.members(pod.pod))
        evicts = pod.pod.priority, pod.pod.shape.spec.preemption_policy
        pod.alike = pod.buckets, pod.pending_plugins, pod.tenant, in_gang, evicts
        alike = self._alike.setdefault(pod.alike, AlikePods())
        alike.add(pod)
        for plugin, signature in pod.buckets:
            self.buckets.setdefault(plugin, {}).setdefault(signature, {})[pod.alike] = alike

    def remove(self, pod: QueuedPod) -> None:
        """The pod waits no more."""
        alike = self._alike[pod.alike]
        alike.remove(pod.uid)
        if not alike.pods:
            del self._alike[pod.alike]
            for plugin, signature in pod.buckets:
                self._remove(pod.alike, plugin, signature)
        pod.buckets, pod.alike = (), None

    def _remove(self, key: Hashable, plugin: str, signature: Hashable) -> None:
        buckets = self.buckets[plugin]
        del buckets[signature][key]
        if not buckets[signature]:
            del buckets[signature]
        if not buckets:
            del self.buckets[plugin]

    def asks_for(self, event: ClusterEvent) -> bool:
        """Whether a plugin that has refused a pod here registered for the event."""
        interested = self._interested(event)
        return any(plugin in interested or _is_any(plugin, event) for plugin in self.buckets)

    def woken_by(self, event: ClusterEvent, old: Any, new: Any) -> list[Woken]:
        """The pods the event may help."""
        interested, verdicts = self._interested(event), self._verdicts.after(old, new)
        known: dict[Hashable, Help] = {}
        woken: dict[Hashable, Woken] = {}
        for plugin, buckets in self.buckets.items():
            hints = (None,) if _is_any(plugin, event) else interested.get(plugin)
            for bucket in buckets.values() if hints is not None else ():
                asked_by = wakes(plugin, hints or (), next(iter(bucket.values())).any(), old, new)
                if asked_by is None:
                    continue
                for key, alike in bucket.items():
                    one, helped = alike.any(), Help.PERHAPS
                    asked = Woken(alike, _strategy(plugin, one), asked_by, helped)
                    if verdicts.tell_of(plugin):
                        helped = known[key] if key in known else known.setdefault(key, verdicts.on(one, one.buckets))
                        for uid in verdicts.apart & alike.pods.keys() if helped is not Help.PERHAPS else ():
                            _note(woken, uid, asked._replace(pods=_alone(alike.pods[uid], alike.seen)))
                    if helped is Help.NONE:
                        alike.seen = self._view.scheduling.last_reservation
                    else:
                        _note(woken, key, asked._replace(help=helped))
        return list(woken.values())

    def refused_by(self, plugin: str) -> list[QueuedPod]:
        """The pods here that the plugin refused."""
        buckets = self.buckets.get(plugin, {}).values()
        return [pod for bucket in buckets for alike in bucket.values() for pod in alike.pods.values()]

    def pods(self) -> list[QueuedPod]:
        """The pods here."""
        return [pod for alike in self._alike.values() for pod in alike.pods.values()]

    def hint(self, pod: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> tuple[Strategy, str]:
        """What the event does to this one pod, which need not be here, and the plugin that asked for it."""
        refused_by = pod.unschedulable_plugins
        if not refused_by:
            return Strategy.AFTER_BACKOFF, ""
        if event.resource is Resource.WILDCARD:
            return Strategy.AFTER_BACKOFF, ""
        found, asked_by = (Strategy.SKIP if refused_by <= self._known else Strategy.AFTER_BACKOFF), ""
        interested, alone = self._interested(event), [(plugin, pod.uid) for plugin in refused_by]
        for plugin in sorted(refused_by):
            woken_by = wakes(plugin, interested.get(plugin, ()), pod, old, new)
            if woken_by is None:
                continue
            verdicts = self._verdicts.after(old, new)
            is_other = verdicts.tell_of(plugin) and pod.uid not in verdicts.apart
            if is_other and verdicts.on(pod, alone) is Help.NONE:
                pod.seen = self._view.scheduling.last_reservation
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


def _strategy(plugin: str, pod: QueuedPod) -> Strategy:
    return Strategy.IMMEDIATELY if plugin in pod.pending_plugins else Strategy.AFTER_BACKOFF


def _alone(pod: QueuedPod, seen: int) -> AlikePods:
    alone = AlikePods(seen)
    alone.add(pod)
    return alone


def _note(woken: dict[Hashable, Woken], key: Hashable, asked: Woken) -> None:
    """One more plugin asks for pods: the fastest way to move counts, and the least that is known of the help."""
    before = woken.setdefault(key, asked)
    if before is not asked:
        most = asked if asked.strategy.value > before.strategy.value else before
        least = Help.ROOM if before.help is asked.help is Help.ROOM else Help.PERHAPS
        woken[key] = most._replace(help=least)


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
