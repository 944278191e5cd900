"""Recordings for tests: histories of generated clusters, written by a scheduler that is driven."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from policyengine.cluster.pod_objects import Pod
from policyengine.policy_compiler import compile_policy
from policyengine.recording.directory import Limits, RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder, RecordingCore
from policyengine.scheduler.messages import DrivenCore, NodeObserved, PodDeleted, PodObserved
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial import Trial
from tests.builders import make_node, make_pod

POLICY = """policy "p" {
  scheduler "batch"
  base filters
  queue { order by pod.priority desc }
  score "least" weight 3 = clamp(20.0 * ln(1.0 + double(node.podCount)) + pow(1.1, double(node.podCount)), 0.0, 100.0)
}"""
NOW = 1_767_600_000.0


def _pod(number: int) -> Pod:
    pod = make_pod(f"p{number}").req(cpu="700m").set("spec.schedulerName", "batch")
    return pod.set("spec.priority", number % 3).build()


class Recorded:
    """A trial that is recorded: a frame whenever `write` is called, a new file with `new_file`."""

    def __init__(self, path: Path, run: str = "run", limits: Limits | None = None, start: float = NOW) -> None:
        self.directory = RecordingDirectory(path, limits or Limits())
        profile = compile_policy(POLICY)

        def driven(state: SchedulerState) -> DrivenCore:
            self.recorder = Recorder(Began("0", run), state.profiles)
            return RecordingCore(state, self.recorder)

        self.trial = Trial([profile], start, driven=driven)

    def play(self, first: int, last: int, each: Callable[[], None] = lambda: None) -> None:
        """Pods come, are bound, fit nowhere, and go, while time passes."""
        trial = self.trial
        for number in range(first, last):
            if number % 10 == 0:
                trial.see(NodeObserved(make_node(f"n{number}").allocatable(cpu="2", pods="110").build()))
            trial.see(PodObserved(_pod(number)))
            if number % 4 == 3:
                trial.see(PodDeleted("default", f"p{number - 3}"))
            trial.advance(1.5)
            each()

    def write(self) -> None:
        """What came, as a frame."""
        while entries := self.recorder.take():
            self.directory.write(entries, 0.0)

    def new_file(self) -> None:
        """What comes goes into another file."""
        self.write()
        self.directory.end_file()
        self.recorder.begin_file()

    def close(self) -> None:
        """The end."""
        self.write()
        self.directory.close()
