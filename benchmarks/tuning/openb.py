"""The traces "openb" of Alibaba's GPU clusters as recordings in which pods come one after the other, and stay.

Whoever asks for a share of a GPU is given a whole one, as an extended resource. The pods of a trace are shuffled by a
seed; one drawn with replacement is appended as long as all together ask for less than `ARRIVALS` times the GPUs there
are; where they ask for more, the last ones are dropped (as Weng et al., USENIX ATC 2023, fill the cluster).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from policyengine.traces.mapping import opened
from policyengine.traces.writing import TraceNode, TracePod, write

GPU: Final = "nvidia.com/gpu"
MODEL: Final = "example.com/gpu-model"
TRAINED: Final = ("default", "cpu100", "gpushare40", "gpuspec10", "multigpu20")
HELD_OUT: Final = ("cpu250", "gpushare100", "gpuspec33", "multigpu50")
"""Of each kind of trace the one that goes further is held out."""
ARRIVALS: Final = 1.3
A_SECOND: Final = 100
"""Pods that come: all of them within the five minutes after which those that were refused are asked again."""
START: Final = 1_767_571_200.0
"""2026-01-05T00:00:00Z."""


def nodes(folder: Path) -> list[TraceNode]:
    """All nodes. Raises `OSError`, `KeyError`."""
    return [TraceNode(row["sn"], _amounts(row, "gpu"), {MODEL: row["model"]}) for row in _rows(folder / "nodes.csv.gz")]


def pods(folder: Path, trace: str) -> list[TracePod]:
    """All pods of a trace. Raises `OSError`, `KeyError`."""
    return [
        TracePod(row["name"], 0.0, _amounts(row, "num_gpu"), on={MODEL: models.split("|")} if models else {})
        for row in _rows(folder / f"pods-{trace}.csv.gz")
        for models in [row.get("gpu_spec", "")]
    ]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with opened(path) as file:
        yield from csv.DictReader(file)


def _amounts(row: dict[str, str], gpus: str) -> dict[str, str]:
    asked = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    return asked | ({GPU: row[gpus]} if int(row[gpus]) else {})


def gpus(one: TraceNode | TracePod) -> int:
    """How many it has, or asks for."""
    return int((one.allocatable if isinstance(one, TraceNode) else one.requests).get(GPU, "0"))


def arrivals(pods: Sequence[TracePod], room: int, seed: int) -> list[TracePod]:
    """The pods of a run on so many GPUs, in order."""
    random = Random(seed)
    found, asked = [], 0
    shuffled = random.sample(pods, len(pods))
    while True:
        pod = shuffled[len(found)] if len(found) < len(shuffled) else random.choice(pods)
        asked += gpus(pod)
        if asked > ARRIVALS * room:
            return found
        found.append(replace(pod, name=f"pod-{len(found):05d}", at=float(len(found) // A_SECOND)))


def recorded(folder: Path, trace: str, seed: int, at: Path) -> Path:
    """The recording of a run, written once. Raises `OSError`, `KeyError`."""
    path = at / f"{trace}-{seed}"
    if not path.exists():
        machines = nodes(folder)
        write(path, "openb", START, "default-scheduler", machines, arrivals(pods(folder, trace), sum(map(gpus, machines)), seed))
    return path
