"""`policies/gpu-packing.policy` tuned on five traces of a GPU cluster, and judged on four others.

    python -m benchmarks.tuning FOLDER [--seeds 10] [--trials 16] [--jobs N | --ray local] [-o json]

FOLDER has the traces "openb" of https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023, csv). What is told:
the GPUs allocated at the end, per cent of all, under MostAllocated of kube-scheduler, the policy's defaults, and the
values found, beside a bound that no order of placement exceeds; the gain is a mean over seeds, each of which is the
mean over the four traces. Candidates are played on a quarter of the nodes, what was found on all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import click

from benchmarks.options import BenchError
from benchmarks.tuning.bound import most_gpus
from benchmarks.tuning.openb import GPU, HELD_OUT, TRAINED, Cluster
from policyengine.commands.progress import Stages
from policyengine.language.diagnostics import Source
from policyengine.tuning.judging import Job, Judges, Task, Workload, judge
from policyengine.tuning.objective import interval, objective
from policyengine.tuning.search import Study
from policyengine.tuning.session import Found, NothingToChoose, Session
from policyengine.tuning.tuned_policy import Subject
from policyengine.tuning.workers import Processes, Ray, WorkersUnusable

POLICY: Final = Path(__file__).parents[2] / "policies" / "gpu-packing.policy"
ONE_OF: Final = 4
"""Candidates are played on one of so many nodes; what was found is judged on all."""
OBJECTIVE: Final = f'allocated["{GPU}"]'
MOST_ALLOCATED: Final = """policy "gpu-packing" {
  scheduler "gpu-packing"
  use NodeResourcesFit weight 1 {
    scoringStrategy: {
      type: "MostAllocated",
      resources: [{name: "nvidia.com/gpu", weight: 1}, {name: "cpu", weight: 1}, {name: "memory", weight: 1}]
    }
  }
}
"""
COLUMNS: Final = ("MostAllocated", "defaults", "tuned", "bound")
Json = dict[str, Any]


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--seeds", type=click.IntRange(2, 1_000), default=10, show_default=True, help="Of each trace held out.")
@click.option("--trials", type=click.IntRange(1, 10_000), default=16, show_default=True, help="Candidates.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes.")
@click.option("--ray", "address", metavar="ADDRESS", help="Play on a Ray cluster; `local` starts one here.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
def main(folder: Path, seeds: int, trials: int, jobs: int, address: str | None, output: str) -> None:
    """Tune, judge, tell."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as recordings, Stages() as stages:
        runs = [(trace, seed) for trace in HELD_OUT for seed in range(1, seeds + 1)]
        try:
            cluster = Cluster(folder, Path(recordings))
            small = Cluster(folder, Path(recordings), ONE_OF)
            training = [Workload(str(small.recorded(trace, 0))) for trace in TRAINED]
            held_out = [Workload(str(cluster.recorded(*run))) for run in runs]
        except (OSError, KeyError, ValueError) as error:
            raise BenchError(f"`{folder}` does not hold the traces: {error}") from None
        try:
            found = _tuned([*training, *held_out], trials, stages, jobs, address)
            packed = _shares(MOST_ALLOCATED, held_out, jobs, address)
        except (NothingToChoose, WorkersUnusable) as error:
            raise BenchError(str(error)) from None
        bounds = [most_gpus(cluster.nodes, cluster.arrivals(*run)) / cluster.gpus for run in runs]
    was, is_now = ([one[0] for one in side] for side in zip(*((h.was, h.is_now) for h in found.held_out), strict=True))
    told = _told(found, cluster.gpus, runs, dict(zip(COLUMNS, (packed, was, is_now, bounds), strict=True)))
    click.echo(json.dumps(told, indent=2) if output == "json" else text(told))


def _workers(job: Job, jobs: int, address: str | None) -> Judges:
    work = partial(judge, job)
    return Ray(work, address) if address is not None else Processes(work, jobs)


def _tuned(workloads: Sequence[Workload], trials: int, stages: Stages, jobs: int, address: str | None) -> Found:
    """The policy, tuned on the first workloads and judged on the others."""
    subject = Subject((Source(POLICY.name, POLICY.read_text(encoding="utf-8")),), {})
    job = Job(subject, workloads, [objective(OBJECTIVE)], [])
    study = Study(subject.dimensions, job.objectives, 0, {})
    with _workers(job, jobs, address) as workers:
        session = Session(job, subject.dimensions, study, workers, len(TRAINED), stages.told)
        return session.run(trials, points=0)


def _shares(text: str, workloads: Sequence[Workload], jobs: int, address: str | None) -> list[float]:
    """What a policy allocates on each."""
    job = Job(Subject((Source("other.policy", text),), {}), workloads, [objective(OBJECTIVE)], [])
    with _workers(job, jobs, address) as workers:
        judged = workers.answers([Task({}, [number]) for number in range(len(workloads))])
        return [one.figures[0]["allocated"][GPU] for one in judged]


def _told(found: Found, gpus: int, runs: Sequence[tuple[str, int]], columns: dict[str, list[float]]) -> Json:
    of_seeds = {
        name: [
            fmean(values[at] for at, run in enumerate(runs) if run[1] == seed) for seed in sorted({s for _, s in runs})
        ]
        for name, values in columns.items()
    }
    gains = {
        name: interval([new - old for new, old in zip(of_seeds["tuned"], of_seeds[name], strict=True)])
        for name in COLUMNS[:2]
    }
    traces = {
        trace: {
            name: fmean(values[at] for at, run in enumerate(runs) if run[0] == trace)
            for name, values in columns.items()
        }
        for trace in HELD_OUT
    }
    return {
        "gpus": gpus,
        "seeds": len(runs) // len(HELD_OUT),
        "candidates": len(found.tried),
        "stoppedEarly": sum(not one.objectives for one in found.tried),
        "values": dict(found.best.values),
        "importance": found.importance,
        "trained": {"defaults": found.was[0], "tuned": found.best.objectives[0]},
        "heldOut": traces | {"all": {name: fmean(values) for name, values in columns.items()}},
        "gainOver": {name: gain and gain._asdict() for name, gain in gains.items()},
    }


def text(told: Json) -> str:
    """What is told, for a terminal."""
    values = ", ".join(f"{name} {value}" for name, value in told["values"].items())
    trained = told["trained"]
    lines = [
        f"{told['candidates']} candidates on {len(TRAINED)} traces, {told['stoppedEarly']} of them stopped early",
        f"found: {values}",
        f"GPUs allocated at the end, per cent of {told['gpus']:,}",
        f"where it was tuned: {100 * trained['defaults']:.2f} by default, {100 * trained['tuned']:.2f} with these",
        f"on what was held out, {told['seeds']} seeds each:",
        "",
        f"{'trace':14}" + "".join(f"{name:>15}" for name in COLUMNS),
    ]
    for trace, shares in told["heldOut"].items():
        lines.append(f"{trace:14}" + "".join(f"{100 * shares[name]:15.2f}" for name in COLUMNS))
    lines.append("")
    for name, gain in told["gainOver"].items():
        mean, low, high = (100 * gain[which] for which in ("mean", "low", "high"))
        sure = "" if gain["low"] > 0.0 else ": it may be chance"
        lines.append(f"gain over {name}: {mean:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}{sure}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.tuning")
