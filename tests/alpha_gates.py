"""Gates of Kubernetes 1.36 that are off by default: what they bring is there here where an object asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

TOLERATIONS: Final = ("TaintTolerationComparisonOperators",)
GROUPS: Final = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
GROUPS_API: Final = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
"""For kube-apiserver, beside `flag(GROUPS)`."""


def flag(gates: Sequence[str]) -> str:
    """For kube-apiserver and kube-scheduler."""
    return "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates)
