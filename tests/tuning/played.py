"""A small scenario, recordings of it, and a job to tune on them."""

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.recording.recorder import DirectRecording
from policyengine.trials.simulation import Simulation
from policyengine.tuning.judging import Job, Judged, Judges, Workload, judge
from policyengine.tuning.objective import objective
from policyengine.tuning.search import Study
from policyengine.tuning.session import Found, Session
from policyengine.tuning.tuned_policy import Subject
from policyengine.tuning.workers import Processes

TEXT = """policy "p" {
  scheduler "s"
  base filters
  param most: int = 2 range [1, 40]
  filter "few" { require node.podCount < most else "enough" }
  score "full" weight 3 = 100 * ratio(node.used.cpu, node.allocatable.cpu)
  score "few" weight 5 = 100 * (1.0 - ratio(node.used.cpu, node.allocatable.cpu))
}
"""


def scenario(folder: Path) -> Path:
    pods = {"name": "t", "count": 30, "poisson": "5s", "runs": {"exponential": "2min"}, "requests": {"cpu": "500m"}}
    said: dict[str, Any] = {
        "duration": "10min",
        "policies": [{"text": TEXT}],
        "nodes": [{"name": "n", "count": 2, "allocatable": {"cpu": 8, "memory": "8Gi"}}],
        "pods": [pods],
    }
    (folder / "s.yaml").write_text(json.dumps(said))
    return folder / "s.yaml"


def recording(folder: Path, seed: int) -> Path:
    path = folder / f"day-{seed}"
    made = DirectRecording(path, "0", "run")
    Simulation(scenario(folder), seed=seed, driven=made.recorded).run()
    made.close()
    return path


def policy(folder: Path) -> Path:
    (folder / "p.policy").write_text(TEXT)
    return folder / "p.policy"


def source() -> Source:
    return Source("p.policy", TEXT)


def dies_at_first() -> PluginRegistry:
    """The plugins of kube-scheduler; the first worker that asks is gone. The file says who is none."""
    marker = Path(os.environ["DIES_ONCE"])
    if marker.exists() and int(marker.read_text()) != os.getpid():
        marker.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return IN_TREE


def told_and_sleeps(path: str) -> None:
    """Work that never ends: who does it stands in the file."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(600.0)


def job(folder: Path, *objectives: str, constraints: tuple[str, ...] = (), seeds: int = 3, **subject: Any) -> Job:
    workloads = [Workload(str(scenario(folder)), seed) for seed in range(1, seeds + 1)]
    return Job(Subject((source(),), {}, **subject), workloads, list(map(objective, objectives)), constraints)


def found(
    asked: Job, workers: Callable[[partial[Judged]], Judges] = lambda work: Processes(work, 1), trials: int = 8
) -> Found:
    dimensions = asked.subject.dimensions
    study = Study(dimensions, asked.objectives, 0, {})
    with workers(partial(judge, asked)) as here:
        return Session(asked, dimensions, study, here, 2, lambda what, share: None).run(trials, points=3)
