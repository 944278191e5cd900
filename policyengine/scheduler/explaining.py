"""`policyengine.explain`: the JSON of the command, from objects already loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyengine.catalogue import compile_policy
from policyengine.plugins.registry import default_profile
from policyengine.scheduler import explain as explaining


def explain(cluster: Mapping[str, Any], policy: str | None = None) -> list[dict[str, Any]]:
    """Judge each pending pod, alone, against the cluster as it stands; none is placed.

    Arguments:
        cluster: a List of objects as `kubectl get … -o json` gives it, or an object with nodes, pods, pending and more;
            see `scheduler.cluster_file`.
        policy: the text of one policy; without it the in-tree plugins.

    Raises:
        PolicyError: the policy has errors, or is not exactly one.
        ClusterShapeError, ObjectError: the cluster is none, or an object in it cannot be read.
    """
    return explaining.explain(cluster, default_profile() if policy is None else compile_policy(policy))
