"""What a policy has to say of a pod at its extension points, and with its binding.

A line is an action like any other: the core logs nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyengine.framework.placed import NO_NODE
from policyengine.scheduler.actions import Log
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.core import Core
from policyengine.scheduler.profiles import Serving

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def log(core: Core, serving: Serving, point: str, pod: PodInfo, node: str = NO_NODE) -> None:
    """Say the policy's lines at this point."""
    for rule in serving.profile.logs:
        if rule.point == point and (line := rule.line(pod, node, core.view.snapshot())) is not None:
            core.actions.append(Log(pod.uid, pod.namespace, pod.name, point, node, line, serving.policy_hash))


def log_asked(core: Core) -> None:
    """Say what the policies have to say of the pods that came to the gates of their queues."""
    for lane in core.lanes:
        for pod in lane.queue.take_asked():
            log(core, lane.serving, "preEnqueue", pod)


def binding_annotations(core: Core, held: Reservation) -> Mapping[str, str]:
    """What is written on the pod with its binding."""
    rules = held.serving.profile.annotations
    if not rules:
        return {}
    snapshot = core.view.snapshot()
    return {rule.key: rule.value(held.queued.pod, held.node, snapshot) for rule in rules}
