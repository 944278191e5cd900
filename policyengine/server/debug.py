"""What the running scheduler knows, for `/debug`: names, queues, sums, pod timelines, policies, quotas and candidates;
no labels or specs.

Lists are cut at `MOST` entries, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import Any

from policyengine.cluster.kinds import NODES, PODS, Kind
from policyengine.cluster.objects import ObjectError, decode, format_moment
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.diagnosis.why_here import why_here
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.policies import rollout_settings
from policyengine.kube.policies.precedence import SourceKey, Standing
from policyengine.scheduler.queue.queued_pods import QueuedPod
from policyengine.scheduler.state import SchedulerState
from policyengine.suggestion import nearest_first

MOST = 5000


def cache(state: SchedulerState) -> dict[str, Any]:
    """Nodes with what is requested of them, pods with where they are."""
    table = state.view.nodes
    nodes = {
        name: {
            "pods": int(table.pod_count[row]),
            "requested": {one: int(table.requested(one)[row]) for one in table.resources if table.requested(one)[row]},
            "allocatable": {
                one: int(table.allocatable(one)[row]) for one in table.resources if table.allocatable(one)[row]
            },
        }
        for name, row in sorted(table.row_of.items())[:MOST]
    }
    pods = {
        pod.key: {"uid": pod.uid, "state": pod.state.value, "node": pod.node_name}
        for pod in sorted(state.view.pods.values(), key=lambda pod: pod.key)[:MOST]
    }
    return {"nodes": nodes, "pods": pods, "counts": {"nodes": table.n, "pods": len(state.view.pods)}}


def queue(state: SchedulerState, now: float) -> dict[str, Any]:
    """Each scheduler name's counts, and where each pod that waits is, in the order of their turns.

    A pod is `{scheduler, place, node, position, waits, attempts, message}`: `position` from 0, null where the pod is
    not active; `waits`, seconds from its creation to `now`; `attempts` so far; `message`: what was last said of it.
    """
    waiting = [pod for pod in state.view.pods.values() if pod.state is not PodState.BOUND]
    pods = {
        one.pod.key: _waiting(state, one.pod, turn, one.attempts, now) for one, turn in islice(_queued(state), MOST)
    }
    for pod in islice((pod for pod in waiting if pod.key not in pods), MOST - len(pods)):
        pods[pod.key] = _waiting(state, pod, None, 0, now)
    return {
        "schedulers": {one.scheduler_name: state.pending_counts(one.scheduler_name) for one in state.profiles},
        "bindings": state.bindings_under_way,
        "pods": pods,
        "count": len(waiting),
    }


def _queued(state: SchedulerState) -> Iterator[tuple[QueuedPod, int | None]]:
    """The pods of every queue, the active ones first, and each one's turn."""
    for profile in state.profiles:
        active, others = state.queued(profile.scheduler_name)
        yield from ((one, turn) for turn, one in enumerate(active))
        yield from ((one, None) for one in sorted(others, key=attrgetter("queued_at", "uid")))


def _waiting(state: SchedulerState, pod: PodInfo, position: int | None, attempts: int, now: float) -> dict[str, Any]:
    return {
        "scheduler": pod.scheduler_name,
        "place": state.place(pod.uid),
        "node": pod.node_name,
        "position": position,
        "waits": max(0, round(now - pod.created_at)) if pod.created_at else None,
        "attempts": attempts,
        "message": state.last_message(pod.uid),
    }


async def compare(state: SchedulerState, client: Client) -> dict[str, Any]:
    """What differs between the cache and a list that is taken now. Changes of the very moment may show.

    Raises `ApiError`, `ConnectionFailed`.
    """
    listed_nodes = {node.metadata.name for node in await _all(client, NODES)}
    listed = {(pod.metadata.key, pod.metadata.uid): pod.spec.node_name or "" for pod in await _all(client, PODS)}
    known = {  # of a pod that is assumed the server does not know yet
        (pod.key, pod.uid): None if pod.state is PodState.ASSUMED else pod.node_name for pod in state.view.pods.values()
    }
    keys, listed_keys = {key for key, _ in known}, {key for key, _ in listed}
    return {
        "nodes": _difference(state.view.nodes.row_of.keys(), listed_nodes),
        "pods": _difference(keys, listed_keys),
        "recreated": sorted({key for key, _ in known.keys() ^ listed.keys()} & keys & listed_keys)[:MOST],
        "elsewhere": {
            key: {"cache": known[key, uid], "server": node}
            for (key, uid), node in sorted(listed.items())
            if (key, uid) in known and known[key, uid] not in (node, None)
        },
    }


def _difference(ours: Set[str], theirs: Set[str]) -> dict[str, list[str]]:
    return {"onlyInCache": sorted(ours - theirs)[:MOST], "onlyOnServer": sorted(theirs - ours)[:MOST]}


async def _all(client: Client, resource: Kind[Any]) -> list[Any]:
    found: list[Any] = []
    async for raw in client.list_all(resource):
        with suppress(ObjectError):  # such an object is not in the cache either
            found.append(decode(resource.type, raw))
    return found


def pod_timeline(state: SchedulerState, namespace: str, name: str) -> dict[str, Any]:
    """`{pod, uid, schedulerName, place, position, queue, node, nominatedNode, policy, served, attempts, message,
    why, story}`, plain values only.

    `place` is that of `SchedulerState.place`; `position` counts the active pods of its queue that come before it, null
    where it is not active; `queue` counts the pods in each place of that queue; `policy` is `{name, hash, scheduler}`,
    null where none serves the pod; `served` are the scheduler names that are, the nearest first; `attempts` are those
    that the timeline holds; `why` says why it has its node (`diagnosis.why_here`). `story` is the timeline: lines
    `{at, what, …}`, oldest first; `at` is RFC 3339.

    Raises:
        KeyError: no pod of this name is pending, reserved or bound, as far as the scheduler knows.
    """
    pod = state.view.find_pod(namespace, name)
    if pod is None:
        raise KeyError(f"{namespace}/{name}")
    profile = next((one for one in state.profiles if one.scheduler_name == pod.scheduler_name), None)
    lines = state.timeline(pod.uid)
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "schedulerName": pod.scheduler_name,
        "place": state.place(pod.uid),
        "position": state.queue_position(pod.uid),
        "queue": state.pending_counts(pod.scheduler_name),
        "node": pod.node_name or None,
        "nominatedNode": pod.nominated_node_name or None,
        "policy": None
        if profile is None
        else {"name": profile.name, "hash": profile.policy_hash, "scheduler": profile.scheduler_name},
        "served": list(nearest_first(pod.scheduler_name, (one.scheduler_name for one in state.profiles))),
        "attempts": max((line.details["attempt"] for line in lines if line.what == "attempted"), default=0),
        "message": "" if pod.node_name else state.last_message(pod.uid),
        "why": why_here(state, pod),
        "story": [
            {"at": format_moment(line.at), "what": line.what}
            | {key: _plain(value) for key, value in line.details.items()}
            for line in lines
        ],
    }


def _plain(value: object) -> object:
    if isinstance(value, frozenset | set | tuple | list):
        return sorted(map(str, value)) if isinstance(value, frozenset | set) else [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


# --- policies ---------------------------------------------------------------------------------------------


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
                "settings": rollout_settings.described(one.settings),
                "found": rollout_settings.found(one),
                "suspended": one.suspended,
            }
            for name, one in sorted(state.rollouts.items())
        ]
    }
