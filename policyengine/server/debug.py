"""What the running scheduler knows, for `/debug`: names, queues, sums and pod timelines; no labels or specs.

Lists are cut at `MOST` entries, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import Any

from policyengine.cluster.kinds import NODES, PODS, Kind
from policyengine.cluster.objects import ObjectError, decode, format_moment
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.diagnosis.why_here import why_here
from policyengine.kube.http.client import Client
from policyengine.scheduler.pod_timeline import TimelineEntry
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
    listed = {_identity(pod): pod.spec.node_name or "" for pod in await _all(client, PODS)}
    known = {(pod.key, pod.uid): _observed_node(pod) for pod in state.view.pods.values()}
    return {
        "nodes": _difference(state.view.nodes.row_of.keys(), listed_nodes),
        "pods": _difference((key for key, _ in known), (key for key, _ in listed)),
        "recreated": sorted({key for key, _ in known.keys() ^ listed.keys()} & _both(known, listed))[:MOST],
        "elsewhere": {
            key: {"cache": known[key, uid], "server": node}
            for (key, uid), node in sorted(listed.items())
            if (key, uid) in known and known[key, uid] not in (node, None)
        },
    }


def _observed_node(pod: PodInfo) -> str | None:
    """None for a pod that is assumed: the server does not know of that yet."""
    return None if pod.state is PodState.ASSUMED else pod.node_name


def _identity(pod: Pod) -> tuple[str, str]:
    return f"{pod.metadata.namespace}/{pod.metadata.name}", pod.metadata.uid


def _both(known: Iterable[tuple[str, str]], listed: Iterable[tuple[str, str]]) -> set[str]:
    return {key for key, _ in known} & {key for key, _ in listed}


def _difference(known: Iterable[str], listed: Iterable[str]) -> dict[str, list[str]]:
    ours, theirs = set(known), set(listed)
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
        "story": [_line(line) for line in lines],
    }


def _line(line: TimelineEntry) -> dict[str, Any]:
    return {
        "at": format_moment(line.at),
        "what": line.what,
        **{key: _plain(value) for key, value in line.details.items()},
    }


def _plain(value: object) -> object:
    if isinstance(value, frozenset | set | tuple | list):
        return sorted(map(str, value)) if isinstance(value, frozenset | set) else [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
