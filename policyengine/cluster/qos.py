"""The quality-of-service class of a pod, from its cpu and memory requests and limits (core/v1 PodQOSClass)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from policyengine.cluster.pod_objects import PodSpec, Resources
from policyengine.cluster.requests import CPU, MEMORY, Amounts, Reading

QOSClass = Literal["BestEffort", "Burstable", "Guaranteed"]


def qos_class(spec: PodSpec) -> QOSClass:
    """Guaranteed: every container, or the pod as a whole, limits cpu and memory to just what it requests."""
    resources: Iterable[Resources]
    if spec.resources is not None:
        resources = (spec.resources,)
    else:
        resources = tuple(container.resources for container in (*spec.containers, *spec.init_containers))
    requests, limits, guaranteed = _sums(resources)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _sums(resources: Iterable[Resources]) -> tuple[Amounts, Amounts, bool]:
    """Summed requests, summed limits, and whether each of `resources` limits both cpu and memory."""
    reading = Reading()
    requests: Amounts = {}
    limits: Amounts = {}
    all_limited = True
    for one in resources:
        wanted = reading.amounts(one.requests, "requests")
        limited = reading.amounts(one.limits, "limits")
        for total, amounts in ((requests, wanted), (limits, limited)):
            for name in (CPU, MEMORY):
                if amounts.get(name):
                    total[name] = total.get(name, 0) + amounts[name]
        all_limited = all_limited and bool(limited.get(CPU)) and bool(limited.get(MEMORY))
    return requests, limits, all_limited
