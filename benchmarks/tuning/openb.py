"""The traces "openb" of Alibaba's GPU clusters as recordings in which pods come one after the other, and stay.

Whoever asks for a share of a GPU is given a whole one, as an extended resource. The pods of a trace are shuffled by a
seed; one drawn with replacement is appended as long as all together ask for less than `ARRIVALS` times the GPUs there
are; where they ask for more, the last ones are dropped (as Weng et al., USENIX ATC 2023, fill the cluster).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from policyengine.traces.mapping import opened
from policyengine.traces.writing import TraceNode, TracePod, write

SCHEDULER: Final = "gpu-packing"
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


class Cluster:
    """The nodes, or one of so many of them, and the pods of a run."""

    def __init__(self, traces: Path, recordings: Path, one_of: int = 1) -> None:
        """`traces`: the folder of the tables; `recordings`: where recordings are written.

        Raises `OSError`, `KeyError`.
        """
        self._traces, self._recordings = traces, recordings
        rows = _rows(traces, "nodes", "openb_node_list_gpu_node")
        self.nodes = [TraceNode(row["sn"], _amounts(row, "gpu"), {MODEL: row["model"]}) for row in rows][::one_of]
        self.gpus = sum(map(_gpus, self.nodes))
        """How many there are."""

    def pods(self, trace: str) -> list[TracePod]:
        """All pods of a trace. Raises `OSError`, `KeyError`."""
        return [
            TracePod(row["name"], 0.0, _amounts(row, "num_gpu"), on={MODEL: models.split("|")} if models else {})
            for row in _rows(self._traces, f"pods-{trace}", f"openb_pod_list_{trace}")
            for models in [row.get("gpu_spec", "")]
        ]

    def arrivals(self, trace: str, seed: int) -> list[TracePod]:
        """The pods of a run, in order. Raises as `pods`."""
        pods, random = self.pods(trace), Random(seed)
        shuffled = random.sample(pods, len(pods))
        found: list[TracePod] = []
        asked = 0
        while True:
            pod = shuffled[len(found)] if len(found) < len(shuffled) else random.choice(pods)
            asked += _gpus(pod)
            if asked > ARRIVALS * self.gpus:
                return found
            found.append(replace(pod, name=f"pod-{len(found):05d}", at=float(len(found) // A_SECOND)))

    def recorded(self, trace: str, seed: int) -> Path:
        """The recording of a run. Raises as `pods`."""
        path = self._recordings / f"{trace}-{seed}"
        write(path, "openb", START, SCHEDULER, self.nodes, self.arrivals(trace, seed))
        return path


def _rows(folder: Path, *names: str) -> Iterator[dict[str, str]]:
    """Of the table of one of these names."""
    tables = [folder / f"{name}{suffix}" for name in names for suffix in (".csv", ".csv.gz")]
    there = next((one for one in tables if one.exists()), tables[-1])
    with opened(there) as file:
        yield from csv.DictReader(file)


def _amounts(row: dict[str, str], gpus: str) -> dict[str, str]:
    asked = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    return asked | ({GPU: row[gpus]} if int(row[gpus]) else {})


def _gpus(one: TraceNode | TracePod) -> int:
    return int((one.allocatable if isinstance(one, TraceNode) else one.requests).get(GPU, "0"))
