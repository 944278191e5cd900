"""What the running scheduler knows of its policies, for `/debug`: what serves, what was refused, quotas, candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyengine.framework.profile import Profile
from policyengine.kube.policies.precedence import SourceKey, Standing
from policyengine.kube.policies.rollout_settings import described, found
from policyengine.scheduler.state import SchedulerState


def status(state: SchedulerState, standings: Mapping[SourceKey, Standing]) -> dict[str, Any]:
    """`{serving, objects}`: each scheduler name with the policy that decides about its pods and where that is from;
    each ConfigMap and SchedulingPolicy with what became of it, and where the first thing that is wrong stands."""
    source = {
        profile.scheduler_name: str(key).replace("`", "")
        for key, one in standings.items()
        for profile in one.profiles
        if one.how in ("Serving", "LastGood")
    }
    serving = [
        {
            "scheduler": one.scheduler_name,
            "policy": one.name,
            "hash": one.policy_hash,
            "from": source.get(one.scheduler_name, "file"),
            "waiting": sum(state.pending_counts(one.scheduler_name).values()),
        }
        for one in state.profiles
    ]
    return {"serving": serving, "objects": [_object(key, one) for key, one in sorted(standings.items())]}


def _object(key: SourceKey, standing: Standing) -> dict[str, Any]:
    problem = standing.problem
    return {
        "kind": key.kind,
        "namespace": key.namespace,
        "name": key.name,
        "how": standing.how,
        "schedulers": [profile.scheduler_name for profile in standing.profiles],
        "hash": standing.policy_hash,
        "message": standing.note if problem is None else problem.message,
        "line": 0 if problem is None else problem.line,
        "column": 0 if problem is None else problem.column,
    }


def quota(state: SchedulerState) -> dict[str, Any]:
    """`{quotas, tenants}`. Amounts are in millicores of cpu, else in whole units; `borrowed` is what exceeds the
    guarantee; `key` says which of a rule's quotas it is, null where that is one; a tenant's `share` is the largest part
    of anything the cluster has that its pods use, by its weight."""
    quotas = [one for profile in state.profiles for one in _quotas(state, profile)]
    tenants = [
        {"scheduler": profile.scheduler_name, "tenant": tenant, "share": share}
        for profile in state.profiles
        for tenant, share in state.shares(profile.scheduler_name).items()
    ]
    return {"quotas": quotas, "tenants": tenants}


def _quotas(state: SchedulerState, profile: Profile) -> list[dict[str, Any]]:
    snapshot = state.view.snapshot()
    return [
        {
            "scheduler": profile.scheduler_name,
            "quota": quota.rule.name,
            "key": quota.key,
            "guarantee": dict(quota.guarantee),
            "limit": dict(quota.limit),
            "used": used,
            "borrowed": {name: max(0, used.get(name, 0) - owed) for name, owed in quota.guarantee.items()},
        }
        for quota in profile.quotas.all(state.view.pods.values())
        for used in [dict(profile.quotas.used(quota, snapshot))]
    ]


def rollout(state: SchedulerState) -> dict[str, Any]:
    """`{rollouts}`: each candidate, how it is tried, what was found, and why it is tried no more."""
    return {
        "rollouts": [
            {
                "scheduler": name,
                "policy": one.profile.name,
                "hash": one.profile.policy_hash,
                "settings": described(one.settings),
                "found": found(one),
                "suspended": one.suspended,
            }
            for name, one in sorted(state.rollouts.items())
        ]
    }
