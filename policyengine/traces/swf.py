"""The standard workload format of batch systems (Feitelson, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).

A line a job, 18 whole numbers, -1 where one is not known; comments start with `;`, and name the machine: `MaxNodes`,
`MaxProcs`, `UnixStartTime`. Of the numbers these are read: 1 the job, 2 its submission, 3 its wait, 4 its run time, all
in seconds, 5 and 8 the processors it had and asked for, 7 and 10 the same of memory, in KiB a processor, 11 its status,
12 the user, 15 the queue. Where a job was swapped out, its parts stand behind it under its number, with a status of 2
to 4; the first line tells the whole job.

A processor is a cpu. A job that asks for more than one node has is a gang of as many pods as it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from policyengine.traces.writing import TraceError, TraceNode, TracePod

_HEADER: Final = re.compile(r";\s*(MaxNodes|MaxProcs|UnixStartTime):\s*(\d+)")
_FIELDS: Final = 18
_PARTS: Final = (2, 3, 4)
_MEMORY: Final = "256Gi"
"""What a node has: the format does not say."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the comments say; 0 where they do not."""

    nodes: int
    cpus: int
    """Of one node."""
    start: float
    """Seconds since the epoch."""


def machine(lines: Iterable[str], nodes: int = 0, cpus: int = 0) -> Machine:
    """`nodes` and `cpus`: instead of what the comments say. Raises `TraceError` where nothing says it."""
    said = {match[1]: int(match[2]) for line in lines if (match := _HEADER.match(line))}
    nodes = nodes or said.get("MaxNodes", 0)
    cpus = cpus or -(-said.get("MaxProcs", 0) // nodes if nodes else 0)
    if nodes <= 0 or cpus <= 0:
        raise TraceError("the trace does not say MaxNodes and MaxProcs: give --nodes and --cpus")
    return Machine(nodes, cpus, float(said.get("UnixStartTime", 0)))


def nodes_of(found: Machine) -> Iterator[TraceNode]:
    """The machine's nodes."""
    for number in range(found.nodes):
        yield TraceNode(f"node-{number}", {"cpu": str(found.cpus), "memory": _MEMORY})


def pods_of(lines: Iterable[str], found: Machine) -> Iterator[TracePod]:
    """The pods of each job. Raises `TraceError`."""
    jobs: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        yield from _job(line, number, found, jobs)


def _job(line: str, number: int, found: Machine, jobs: set[str]) -> Iterator[TracePod]:
    """`jobs`: the names that were given, to which the job's is added."""
    try:
        fields = [int(float(word)) for word in line.split()]
    except (ValueError, OverflowError):
        raise TraceError(f"line {number}: a job is {_FIELDS} numbers") from None
    if len(fields) != _FIELDS:
        raise TraceError(f"line {number}: a job is {_FIELDS} numbers, and here are {len(fields)}")
    if fields[10] in _PARTS:
        return
    job, submitted, wait, ran = fields[:4]
    cpus = fields[7] if fields[7] > 0 else fields[4]
    memory = fields[9] if fields[9] > 0 else fields[6]
    if cpus <= 0 or submitted < 0:
        return  # cancelled before it asked for anything
    members = -(-cpus // found.cpus)
    if members > found.nodes:
        raise TraceError(
            f"line {number}: the job asks for {cpus} processors; {found.nodes} nodes have {found.cpus} each"
        )
    name = f"job-{job}"
    name = name if name not in jobs else f"{name}-line-{number}"  # logs that were put together number jobs twice
    jobs.add(name)
    started = float(submitted + max(0, wait)) if ran >= 0 else None
    ended = None if started is None else started + ran
    for member in range(members):
        share = cpus // members + (member < cpus % members)
        requests = {"cpu": str(share)} | ({"memory": f"{memory * share}Ki"} if memory > 0 else {})
        yield TracePod(
            name if members == 1 else f"{name}-{member}",
            float(submitted),
            requests,
            started,
            ended,
            f"user-{fields[11]}" if fields[11] >= 0 else "default",
            labels={"queue": str(fields[14])} if fields[14] >= 0 else {},
            gang=name if members > 1 else "",
            members=members,
        )
