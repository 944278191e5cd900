"""`policyengine.explain`: the JSON of the command, from objects already loaded."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from policyengine.clock import SystemClock
from policyengine.diagnosis.dump import carries_policies, read_objects
from policyengine.diagnosis.explain import explain_alone, explain_forecast
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import IN_TREE, with_default_profile
from policyengine.policy_compiler import compile_policy


def explain(
    cluster: Mapping[str, Any], policy: str | Profile | None = None, *, alone: bool = False, now: datetime | None = None
) -> list[dict[str, Any]]:
    """What becomes of each pending pod, in the queue's order; with `alone`, what a policy says of each by itself.

    Arguments:
        cluster: a List of objects as `kubectl get … -o json` gives it, or an object with nodes, pods, pending and more;
            see `diagnosis.dump`.
        policy: the text of one policy, or what `compile_policy` made of it. Without it the policies that serve among
            the objects; in any case the in-tree plugins as kube-scheduler runs them, where nobody serves its name.
        alone: evaluate each pod, alone, against the cluster as it stands, whatever its schedulerName; none is placed.
        now: what the policy's `now` is, with a time zone; without it the machine's clock.

    Returns:
        The entries of `diagnosis.explain`: of `explain_forecast`; with `alone`, of `explain_alone`.

    Raises:
        PolicyError: the policy has errors, or is not exactly one.
        ClusterShapeError, ObjectError: the cluster is none, or an object in it cannot be read.
        ValueError: `now` has no time zone.
    """
    if now is not None and now.tzinfo is None:
        raise ValueError("`now` has no time zone; give it one, such as `datetime.UTC`")
    moment = SystemClock().now() if now is None else now.timestamp()
    objects = read_objects(cluster)
    given = [compile_policy(policy) if isinstance(policy, str) else policy] if policy is not None else []
    if alone and given:
        return explain_alone(objects, given, now=moment)
    if not given and carries_policies(cluster):
        from policyengine.kube.policies.serving import serving_in  # a tenth of a second

        given = list(serving_in(cluster, IN_TREE).profiles)
    profiles = with_default_profile(given)
    return explain_alone(objects, profiles[::-1], now=moment) if alone else explain_forecast(objects, profiles, moment)
