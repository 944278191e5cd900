"""All of `tune`: the policy as it is, the search, what each dimension does alone, and what was held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from policyengine.tuning.dimensions import Dimension
from policyengine.tuning.judging import Figures, Job, Judged, Judges, Task
from policyengine.tuning.objective import Interval, Objective, interval
from policyengine.tuning.search import Study, Tried

POINTS: Final = 5
"""Values of a dimension that are played, the others being the best."""
Told = Callable[[str, float], None]
"""Is told what is done, and how far it is: 0 to 1."""


class NothingToChoose(ValueError):
    """No values are better than others; the message says why."""


@dataclass(frozen=True, slots=True)
class Held:
    """A policy's figures on what was held out, beside those of the policy as it is."""

    workload: str
    old: Figures
    new: Figures
    was: tuple[float, ...]
    is_now: tuple[float, ...]
    """The objectives."""
    broken: int
    """Constraints that are not kept here."""


@dataclass(frozen=True, slots=True)
class Found:
    """What `tune` found."""

    objectives: Sequence[Objective]
    dimensions: Sequence[Dimension]
    tried: Sequence[Tried]
    best: Tried
    was: tuple[float, ...]
    """The objectives of the policy as it is: the mean over what was trained on."""
    front: Sequence[Tried] = ()
    """Where there are several objectives."""
    importance: dict[str, float] = field(default_factory=dict)
    profiles: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    """Dimension -> (value, first objective), the others being the best."""
    held_out: Sequence[Held] = ()
    notes: Sequence[str] = ()
    """Of what was played."""

    @property
    def is_better(self) -> bool:
        """Whether the best is better than the policy as it is, on what was trained on."""
        return self.objectives[0].better(self.best.objectives[0], self.was[0])

    @property
    def gain(self) -> Interval | None:
        """Of the first objective on what was held out: how much more it is than with the policy as it is."""
        return interval([one.is_now[0] - one.was[0] for one in self.held_out])


@dataclass(frozen=True, slots=True)
class Session:
    """A job and who works on it. The workloads of the job are those to train on, then those held out."""

    job: Job
    dimensions: Sequence[Dimension]
    study: Study
    workers: Judges
    trained: int
    """How many workloads are trained on."""
    told: Told

    def run(self, trials: int, points: int = POINTS) -> Found:
        """Search until so many candidates are finished, and judge the best.

        Raises `NothingToChoose`, and as `Workers.answers`.
        """
        every = range(len(self.job.workloads))
        as_it_is = self._judged("the policy as it is", [Task({}, [number]) for number in every])
        old = [judged.figures[0] for judged in as_it_is]
        self._refuse_idle(old[: self.trained])
        training = list(range(self.trained))
        self._search(trials, training, old)
        best = self.study.best() if len(self.job.objectives) == 1 else self._middle()
        if best is None:
            raise NothingToChoose(f"none of {len(self.study.tried)} candidates keeps the constraints")
        self._refuse_constant()
        was = self._was(old[: self.trained])
        front = self.study.front() if len(self.job.objectives) > 1 else []
        profiles = self._profiles(best, points, training, old)
        held_out = self._held_out(best, old)
        importance = self.study.importance()
        tried = self.study.tried
        notes = list(dict.fromkeys(note for judged in as_it_is for note in judged.notes))
        return Found(
            self.job.objectives, self.dimensions, tried, best, was, front, importance, profiles, held_out, notes
        )

    def _judged(self, what: str, tasks: Sequence[Task]) -> list[Judged]:
        found = []
        for one in self.workers.answers(tasks):
            found.append(one)
            self.told(what, len(found) / len(tasks))
        return found

    def _was(self, old: Sequence[Figures]) -> tuple[float, ...]:
        return tuple(fmean(one.of(figures, figures) for figures in old) for one in self.job.objectives)

    def _refuse_idle(self, old: Sequence[Figures]) -> None:
        self._was(old)  # an objective that is none is told before the search
        about_waits = all("wait" in one.expression for one in self.job.objectives)
        if about_waits and not any(figures["wait"]["max"] for figures in old):
            raise NothingToChoose("no pod waits in what is trained on: nothing can be gained there")

    def _search(self, trials: int, training: Sequence[int], old: Sequence[Figures]) -> None:
        finished = len(self.study.tried)

        def told() -> None:
            nonlocal finished
            finished += 1
            self.told("candidates", finished / trials)

        self.study.search(trials, self.workers, training, old[: self.trained], told)

    def _refuse_constant(self) -> None:
        found = {one.objectives[0] for one in self.study.tried if one.objectives}
        if len(found) == 1 and len(self.study.tried) > 1:
            names = ", ".join(f"`{one.name}`" for one in self.dimensions)
            raise NothingToChoose(
                f"`{self.job.objectives[0].expression}` is {found.pop():g} whatever {names} are: nothing to choose by"
            )

    def _middle(self) -> Tried | None:
        """Of the front, the candidate that gives up least of every objective: its worst part of an objective's span is
        the smallest."""
        front = self.study.front()

        def worst(one: Tried) -> float:
            parts = []
            for at, objective in enumerate(self.job.objectives):
                values = [other.objectives[at] for other in front]
                best = max(values) if objective.sign > 0 else min(values)
                parts.append(abs(best - one.objectives[at]) / ((max(values) - min(values)) or 1.0))
            return max(parts)

        return min(front, key=worst, default=None)

    def _profiles(
        self, best: Tried, points: int, training: Sequence[int], old: Sequence[Figures]
    ) -> dict[str, list[tuple[str, float]]]:
        if points < 2:
            return {}
        asked: list[tuple[str, str]] = [(one.name, value) for one in self.dimensions for value in one.profile(points)]
        tasks = [Task({**best.values, name: value}, training, old[: self.trained]) for name, value in asked]
        found: dict[str, list[tuple[str, float]]] = {}
        for (name, value), judged in zip(asked, self._judged("each value alone", tasks), strict=True):
            found.setdefault(name, []).append((value, fmean(values[0] for values in judged.values)))
        return found

    def _held_out(self, best: Tried, old: Sequence[Figures]) -> list[Held]:
        numbers = range(self.trained, len(self.job.workloads))
        tasks = [Task(best.values, [number], [old[number]]) for number in numbers]
        return [
            Held(
                str(self.job.workloads[number]),
                old[number],
                judged.figures[0],
                self._was([old[number]]),
                tuple(judged.values[0]),
                judged.broken,
            )
            for number, judged in zip(numbers, self._judged("what was held out", tasks), strict=True)
        ]
