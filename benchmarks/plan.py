"""What `policyengine plan` takes: a day of 1,000 nodes and 50,000 pods under two policies, and a cluster of 5,000 nodes
and 50,000 pods. The command itself is measured, from start to end; it plays one policy in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.figures import Figure
from benchmarks.processes import ChildFailed
from benchmarks.workloads import mixed, peer_node
from policyengine.traces.writing import TraceNode, TracePod, write

POLICIES: Final = ("spread-cpu", "bin-packing")
"""Old and new, of those in `policies/`."""
DAY: Final = 86_400.0
START: Final = 1_767_571_200.0
"""2026-01-05T00:00:00Z."""
NODES, PODS = 1_000, 50_000
NODES_OF_CLUSTER: Final = 5_000
LOOKS_AFTER: Final = 0.2
"""Seconds between two looks at the memory."""


def plans(nodes: int = NODES, pods: int = PODS, nodes_of_cluster: int = NODES_OF_CLUSTER) -> list[Figure]:
    """Measure both. Raises `ChildFailed`."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        policies = [_policy(name, Path(folder)) for name in POLICIES]
        day = Path(folder) / "day"
        machines = (TraceNode(f"node-{i:06d}", {"cpu": "4", "memory": "32Gi"}) for i in range(nodes))
        write(day, "bench", START, "default-scheduler", machines, _day(pods, nodes))
        told = f"a day of {nodes:,} nodes and {pods:,} pods, two policies"
        found = command_figures(told, 120.0, 600.0, "plan", *policies, "--recording", str(day))
        dump = Path(folder) / "cluster.json"
        dump.write_text(json.dumps(_cluster(nodes_of_cluster, pods)), encoding="utf-8")
        told = f"a cluster of {nodes_of_cluster:,} nodes and {pods:,} pods, two policies"
        return found + command_figures(
            told, 30.0, None, "plan", *policies, "--cluster", str(dump), "--now", "2026-01-05T00:00:00Z"
        )


def _policy(name: str, folder: Path) -> str:
    """A shipped policy that serves the default scheduler's name."""
    text = (Path(__file__).parents[1] / "policies" / f"{name}.policy").read_text(encoding="utf-8")
    path = folder / f"{name}.policy"
    path.write_text(re.sub(r'scheduler "[^"]*"', 'scheduler "default-scheduler"', text, count=1), encoding="utf-8")
    return str(path)


def _day(count: int, nodes: int) -> Iterator[TracePod]:
    """Pods of ten tenants, more of them by day; at noon nearly as many as there is room for."""
    random = Random("plan")
    scale = nodes / count * 50  # as long as keeps the nodes as busy, whatever their number
    for number in range(count):
        at = (random.betavariate(2, 2) if random.random() < 0.7 else random.random()) * DAY
        yield TracePod(
            f"pod-{number:06d}",
            at,
            {"cpu": random.choice(("250m", "500m", "1", "2")), "memory": random.choice(("500Mi", "1Gi", "4Gi"))},
            at,
            min(at + random.uniform(600.0, 9_000.0) * scale, 2 * DAY),
            f"tenant-{number % 10}",
            random.choice((0, 0, 0, 100)),
        )


def _cluster(nodes: int, pods: int) -> dict[str, Any]:
    """Nine of ten pods stand round robin, the last ones wait."""
    items = [peer_node(i) for i in range(nodes)]
    for i in range(pods):
        item = mixed(i)
        item["metadata"] |= {
            "uid": f"pod-{i:06d}",
            "creationTimestamp": f"2026-01-04T{i // 3600:02d}:{i // 60 % 60:02d}:00Z",
        }
        if i < pods * 9 // 10:
            item["spec"]["nodeName"] = items[i % nodes]["metadata"]["name"]
        items.append(item)
    return {"kind": "List", "apiVersion": "v1", "items": items}


def command_figures(
    told: str, seconds: float, megabytes: float | None, *arguments: str, codes: tuple[int, ...] = (0,)
) -> list[Figure]:
    """What a command that prints JSON takes, from start to end with one of these codes. Raises `ChildFailed`."""
    command = [sys.executable, "-c", "from policyengine.commands.main import main; main()", *arguments]
    began, peak = time.monotonic(), 0.0
    child = subprocess.Popen([*command, "-o", "json"], stdout=subprocess.DEVNULL)
    while child.pid != (ended := os.wait4(child.pid, os.WNOHANG))[0]:
        peak = max(peak, _memory(child.pid))
        time.sleep(LOOKS_AFTER)
    child.returncode = os.waitstatus_to_exitcode(ended[1])
    if child.returncode not in codes:
        raise ChildFailed(f"{' '.join(command[3:])}: exit code {child.returncode}")
    spent = ended[2].ru_utime + ended[2].ru_stime
    return [
        Figure(f"{told}: by the clock", time.monotonic() - began, "s", at_most=seconds, digits=1),
        Figure(f"{told}: CPU of all processes", spent, "s", digits=1),
        Figure(f"{told}: peak memory of all", peak, "MB", at_most=megabytes),
    ]


def _memory(pid: int) -> float:
    """Megabytes that the process and its children hold, what they share counted once (proportional set size)."""
    total = 0.0
    with suppress(OSError, ValueError):  # one that has just ended
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        for one in (pid, *map(int, children)):
            text = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="utf-8")
            total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024
    return total
