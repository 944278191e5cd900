"""One candidate on some workloads, each a recording or a scenario with a seed: what every process does for the search.
Nothing here depends on where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.plan.history import History, read
from policyengine.plan.measures import measures
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import PastPlay, alone, finished, replaced
from policyengine.trials.play import Play
from policyengine.trials.simulation import Simulation
from policyengine.tuning.objective import Objective, broken
from policyengine.tuning.tuned_policy import Subject, Values
from policyengine.tuning.workers import Workers

Look = Callable[[float, dict[str, Any]], bool]
"""Is told (the share of the time that is played, the figures so far), and says whether to play on."""
LOOKS = 4
"""How often a play is looked at."""


class Stopped(Exception):
    """Somebody who looked had enough."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Arrivals, departures and changes of nodes, the same in each play."""

    path: str
    seed: int | None = None
    """Of a scenario; None of a recording."""

    def __str__(self) -> str:
        return Path(self.path).name if self.seed is None else f"{Path(self.path).name} seed {self.seed}"

    def notes(self, plugins: Callable[[], PluginRegistry]) -> list[str]:
        """What of it could not be used, or is not as it was written. Raises as `play`."""
        if self.seed is not None:
            return []
        return [f"{self}: {note}" for note in _history(self.path, plugins).notes]

    def play(self, profile: Profile, plugins: Callable[[], PluginRegistry], look: Look) -> dict[str, Any]:
        """The figures of a play under a policy.

        Raises `Stopped`, `NotServed`, `UnusableRecording`, `ScenarioError`, `OSError`.
        """
        if self.seed is None:
            history = _history(self.path, plugins)
            served = _serving(history, profile)
            watching = Watching(memberships := Memberships((), served))
            play: Play = PastPlay(history, alone(history), served, 0, watching)
            step, length = play.step, history.end - history.start
        else:
            path, registry = Path(self.path), plugins()
            served = replaced(Simulation(path, seed=self.seed, registry=registry).profiles, [profile])
            watching = Watching(memberships := Memberships((), served))
            run = Simulation(path, served, seed=self.seed, registry=registry, watch=watching)
            play, step, length = run.play, run.step, run.scenario.duration or 0.0
        watching.play = play
        looked = 1
        while step():
            if length and length * looked / LOOKS <= play.at < length:
                looked += 1
                so_far = Watching(memberships)
                so_far.play, so_far.members = play, dict(watching.members)
                if not look(play.at / length, measures(finished(play, so_far))):
                    raise Stopped
        return measures(finished(play, watching))


def _serving(history: History, profile: Profile) -> list[Profile]:
    """The policies of the recording with this one; where it has none of its scheduler name, as an imported trace, there
    have to be pods that ask for it."""
    there = list(history.profiles.values())
    asked = {past.pod.spec.scheduler_name for past in history.pods}
    unserved = profile.scheduler_name in asked - {one.scheduler_name for one in there}
    return replaced([*there, profile] if unserved else there, [profile])


@lru_cache(maxsize=64)
def _history(path: str, plugins: Callable[[], PluginRegistry]) -> History:
    """Read once in a process."""
    return read(Path(path), plugins())


Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a study have in common."""

    subject: Subject
    workloads: Sequence[Workload]
    objectives: Sequence[Objective]
    constraints: Sequence[str]


@dataclass(frozen=True, slots=True)
class Task:
    """A candidate, and what it is played on."""

    values: Values
    workloads: Sequence[int]
    """Places in the job's."""
    old: Sequence[Figures] = ()
    """Of these, the figures of the policy as it is; none where this is what is asked for."""
    limits: Sequence[float] = ()
    """After each look the objective's mean so far that a candidate has to reach to be played on; of one objective, and
    only as far as there are such."""


@dataclass(slots=True)
class Judged:
    """What came of a task."""

    figures: list[Figures] = field(default_factory=list)
    """Of each workload that was played to its end."""
    values: list[list[float]] = field(default_factory=list)
    """Of each of these, the objectives."""
    broken: int = 0
    """How many constraints were not kept, over all workloads."""
    steps: list[float] = field(default_factory=list)
    """The first objective after each look: the mean over what was played so far."""
    stopped: bool = False
    notes: list[str] = field(default_factory=list)
    """Of what was played, where the policy as it is was."""


def judge(job: Job, task: Task) -> Judged:
    """Play a candidate. Raises `NothingToTune`, `WrongObjective`, and as `Workload.play`."""
    profile = job.subject.profile(task.values)
    found = Judged()
    for place, number in enumerate(task.workloads):
        workload, looks = job.workloads[number], _Looks(job, task, found, place)
        try:
            figures = workload.play(profile, job.subject.plugins, looks)
        except Stopped:
            found.stopped = True
            return found
        found.figures.append(figures)
        if not task.old:
            found.notes += workload.notes(job.subject.plugins)
            continue
        found.values.append([one.of(task.old[place], figures) for one in job.objectives])
        found.broken += broken(job.constraints, task.old[place], figures)
        looks.ended()
        if looks.is_worse() and place + 1 < len(task.workloads):
            found.stopped = True
            break
    return found


class _Looks:
    """Looks at a play from time to time."""

    def __init__(self, job: Job, task: Task, found: Judged, place: int) -> None:
        self._job, self._task, self._found, self._place = job, task, found, place

    def __call__(self, share: float, figures: Figures) -> bool:
        if not self._task.old:
            return True
        objective = self._job.objectives[0]
        here = objective.of(self._task.old[self._place], figures)
        before = [values[0] for values in self._found.values]
        self._fill(min(int(share * LOOKS), LOOKS - 1), fmean([*before, here]))
        return not self.is_worse()

    def ended(self) -> None:
        """The workload was played to its end."""
        self._fill(LOOKS, fmean(values[0] for values in self._found.values))

    def _fill(self, looked: int, mean: float) -> None:
        """What was not looked at, because nothing happened there, is as what was seen next."""
        steps = self._found.steps
        steps.extend([mean] * (self._place * LOOKS + looked - len(steps)))

    def is_worse(self) -> bool:
        """Whether a limit says that it is not worth while to play on."""
        at = len(self._found.steps) - 1
        if not 0 <= at < len(self._task.limits):
            return False
        return self._job.objectives[0].better(self._task.limits[at], self._found.steps[at])


Judges = Workers[Task, Judged]
"""Who works for a study: `judge`, of its job."""
