"""One extender, as far as the core has to know it, and a question that it has not answered yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.profile import Profile
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.scheduler.messages import ExtendersAnswered
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile
from policyengine.scheduler.queue.queued_pods import QueuedPod


@dataclass(frozen=True, slots=True)
class Extender:
    """What the core has to know of one."""

    name: str
    """By which refusals are signed: its URL prefix."""
    resources: frozenset[str] = frozenset()
    """Those that it manages; empty for all pods."""
    decides: bool = True
    """Whether it filters or scores."""
    preempts: bool = False
    """Whether it has a say in who leaves for a pod."""
    binds: bool = False
    unchecked: frozenset[str] = frozenset()
    """Resources that NodeResourcesFit leaves to it (`leave_to`)."""

    def is_interested(self, pod: PodInfo) -> bool:
        """Without managed resources in every pod, else in pods with a container that names one of them in its requests
        or limits, whatever the amount (`IsInterested`, extender.go, v1.36)."""
        return not self.resources or any(
            not self.resources.isdisjoint(amounts)
            for container in (*pod.shape.spec.containers, *pod.shape.spec.init_containers)
            for amounts in (container.resources.requests, container.resources.limits)
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked and is not answered yet."""

    number: int
    served: ServedProfile
    queued: QueuedPod
    runtime: ProfileRuntime
    """The policy by which the nodes were found."""
    answered: ExtendersAnswered | None = None
    """What was said of its nodes before, where the question is about victims."""


def leave_to(extenders: Iterable[Extender], profile: Profile) -> Profile:
    """The profile with what the extenders account for left to them, whatever its policy says; the same one if that is
    nothing. As `buildExtenders` does it (scheduler.go, v1.36): the managed resources with `ignoredByScheduler` of all
    extenders replace NodeResourcesFit's `ignoredResources`, in every profile."""
    names = frozenset[str]().union(*(extender.unchecked for extender in extenders))
    found = next((plugin for plugin in profile.plugins() if isinstance(plugin, NodeResourcesFit)), None)
    if not names or found is None:
        return profile
    ignoring = found.ignoring(names)

    def swapped(plugin: Any) -> Any:
        return ignoring if plugin is found else plugin

    return replace(
        profile,
        filters=tuple(map(swapped, profile.filters)),
        scores=tuple((swapped(plugin), weight) for plugin, weight in profile.scores),
    )
