"""What a trace tells of nodes and pods, written as a recording in which nothing was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectError, decode, format_time
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import PodGroup
from policyengine.recording.directory import Limits, RecordingDirectory, files
from policyengine.recording.encoding import LATEST, Began
from policyengine.recording.recorder import Recorder
from policyengine.scheduler.messages import CacheSynced, Message, NodeObserved, ObjectObserved, PodDeleted, PodObserved

ELSEWHERE: Final = "node-of-the-trace"
"""Where pods ran that the trace gives no node: no node is called so. A plan takes from it how long they ran."""
LONGEST: Final = 100 * 366 * 86400.0
"""Seconds."""
_ROOM: Final = {"pods": "110"}


class TraceError(ValueError):
    """A trace that cannot be read; the message says where and why."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node that is there all the time."""

    name: str
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod; times in seconds from the start of the trace."""

    name: str
    at: float
    requests: Mapping[str, str]
    started: float | None = None
    ended: float | None = None
    namespace: str = "default"
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    on: Mapping[str, list[str]] = field(default_factory=dict)
    """Label of its node -> the values that will do."""
    gang: str = ""
    """The name of the gang that it belongs to."""
    members: int = 0
    """How many pods that gang has."""


def write(
    path: Path, program: str, start: float, scheduler_name: str, nodes: Iterable[TraceNode], pods: Iterable[TracePod]
) -> int:
    """Write the recording; how many pods it has. Where that fails, nothing that was written is left.

    Arguments:
        path: a folder without a recording.
        start: what the trace counts from, in seconds since the epoch.
        scheduler_name: whom the pods ask for.

    Raises `TraceError`, `OSError`, `DirectoryInUse`.
    """
    if not 0.0 <= start <= LATEST - LONGEST:
        raise TraceError("the trace starts before 1970, or later than 100 years before the year 10000")
    directory = RecordingDirectory(path, Limits(file_age=float("inf")))
    before = files(path)
    recorder = Recorder(Began(program, "trace", watched_only=True))
    try:
        for node in nodes:
            recorder.told(start, NodeObserved(_node(node, start)))
        recorder.told(start, CacheSynced())
        count = 0
        events: list[tuple[float, int, Message]] = []
        gangs: set[str] = set()
        for count, pod in enumerate(_named_apart(pods), 1):
            if pod.gang and pod.gang not in gangs:
                gangs.add(pod.gang)
                group = {"metadata": {"name": pod.gang, "namespace": pod.namespace}, "spec": {"minMember": pod.members}}
                decoded = _decoded(PodGroup, group, f"gang `{pod.gang}`")
                events.append((pod.at, len(events), ObjectObserved("PodGroup", decoded)))
            for at, message in _life(pod, count, start, scheduler_name):
                events.append((at, len(events), message))
        for at, _, message in sorted(events, key=lambda event: event[:2]):
            recorder.told(start + at, message)
            if recorder.is_full:
                directory.write(recorder.take(), 0.0)
        while entries := recorder.take():
            directory.write(entries, 0.0)
    except BaseException:
        for one in set(files(path)).difference(before):  # a part would be taken for the whole
            one.unlink()
        raise
    finally:
        directory.close()
    return count


def _node(node: TraceNode, start: float) -> Node:
    room = {**_ROOM, **node.allocatable}
    metadata = {"name": node.name, "uid": f"node-{node.name}", "creationTimestamp": format_time(start)}
    labels = {"kubernetes.io/hostname": node.name, **node.labels}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    item = {"metadata": metadata | {"labels": labels}, "status": status}
    decoded: Node = _decoded(Node, item, f"node `{node.name}`")
    return decoded


def _named_apart(pods: Iterable[TracePod]) -> Iterator[TracePod]:
    """A name that comes again gets the number of its row."""
    seen: set[tuple[str, str]] = set()
    for number, pod in enumerate(pods, 1):
        key = (pod.namespace, pod.name)
        named = pod if key not in seen else replace(pod, name=f"{pod.name}-{number}")
        seen |= {key, (named.namespace, named.name)}
        yield named


def _life(pod: TracePod, number: int, start: float, scheduler_name: str) -> Iterator[tuple[float, Message]]:
    name = pod.name
    labels = {**pod.labels, **({GROUP_LABEL: pod.gang} if pod.gang else {})}
    where = f"pod `{name}`"
    if not all(0.0 <= at <= LONGEST for at in (pod.at, pod.started or 0.0, pod.ended or 0.0)):
        raise TraceError(f"{where}: its times are not between the start of the trace and 100 years later")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": pod.namespace,
        "uid": f"{number:08d}-0000-4000-8000-000000000000",
        "creationTimestamp": format_time(start + pod.at),
        "labels": labels,
    }
    spec: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "priority": pod.priority,
        "containers": [{"name": "main", "resources": {"requests": dict(pod.requests)}}],
    }
    if pod.on:
        terms = [{"key": key, "operator": "In", "values": values} for key, values in pod.on.items()]
        required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    yield pod.at, PodObserved(_decoded(Pod, {"metadata": metadata, "spec": spec}, where))
    if pod.started is None:
        return
    bound = {**spec, "nodeName": ELSEWHERE}
    started = max(pod.at, pod.started)
    running = {"metadata": metadata, "spec": bound, "status": {"phase": "Running"}}
    yield started, PodObserved(_decoded(Pod, running, where))
    if pod.ended is None:
        return
    ended = max(started, pod.ended)
    yield ended, PodObserved(_decoded(Pod, running | {"status": {"phase": "Succeeded"}}, where))
    yield ended, PodDeleted(pod.namespace, name, metadata["uid"])


def _decoded(kind: Any, item: Mapping[str, Any], where: str) -> Any:
    try:
        return decode(kind, item)
    except ObjectError as error:
        raise TraceError(f"{where}: {error}") from None
