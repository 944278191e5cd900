"""`policyengine.explain`: the JSON of the command, from objects already loaded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from policyengine.clock import SystemClock
from policyengine.diagnosis import explain as explaining
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy


def explain(
    cluster: Mapping[str, Any], policy: str | Profile | None = None, *, now: datetime | None = None
) -> list[dict[str, Any]]:
    """Evaluate each pending pod, alone, against the cluster as it stands; none is placed.

    Arguments:
        cluster: a List of objects as `kubectl get … -o json` gives it, or an object with nodes, pods, pending and more;
            see `diagnosis.explain`.
        policy: the text of one policy, or what `compile_policy` made of it; without it the in-tree plugins.
        now: what the policy's `now` is, with a time zone; without it the machine's clock.

    Raises:
        PolicyError: the policy has errors, or is not exactly one.
        ClusterShapeError, ObjectError: the cluster is none, or an object in it cannot be read.
        ValueError: `now` has no time zone.
    """
    if now is not None and now.tzinfo is None:
        raise ValueError("`now` has no time zone; give it one, such as `datetime.UTC`")
    profile = default_profile() if policy is None else compile_policy(policy) if isinstance(policy, str) else policy
    return explaining.explain(cluster, profile, now=SystemClock().now() if now is None else now.timestamp())
