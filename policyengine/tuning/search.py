"""The search: Optuna asks for candidates in batches, and learns what came of them.

Rules:
1. A batch has `BATCH` candidates, however many play them, and what is asked for in it follows from the seed and from
   what was told before: so the result is the same on one process, on many and on a Ray cluster.
2. Each batch has a sampler of its own, seeded by the seed and the number of candidates before: a study that is
   continued goes on as if it had never ended.
3. With one objective a candidate that, after a look, is worse than the median of those before it, is not played on.
4. What was finished is in the study file at once.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from policyengine.tuning.dimensions import Dimension
from policyengine.tuning.judging import Figures, Judged, Judges, Task
from policyengine.tuning.objective import Objective
from policyengine.tuning.subject import Values

BATCH: Final = 8
ENOUGH: Final = 16
"""Candidates that are played whole before any is stopped early."""
_VALUES, _BROKEN, _STEPS = "values", "broken", "steps"


class StudyUnusable(ValueError):
    """The study file, or Optuna, cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate that was played, to its end or not."""

    number: int
    values: Values
    objectives: tuple[float, ...]
    """The mean over the workloads; none where it was stopped."""
    broken: int
    """Constraints that were not kept."""

    @property
    def counts(self) -> bool:
        """Whether it was played to its end and keeps the constraints."""
        return bool(self.objectives) and not self.broken


class Study:
    """The candidates of one question, in a file or in memory alone."""

    def __init__(
        self,
        dimensions: Sequence[Dimension],
        objectives: Sequence[Objective],
        seed: int,
        about: dict[str, Any],
        path: Path | None = None,
    ) -> None:
        """`about`: what the answers depend on; a study file of something else is refused.

        Raises `StudyUnusable`, `OSError`.
        """
        self._dimensions, self._objectives, self._seed = dimensions, objectives, seed
        try:
            self._optuna: Any = import_module("optuna")
        except ImportError:
            raise StudyUnusable("`tune` needs Optuna: pip install 'policyengine-scheduler[tune]'") from None
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        warnings.filterwarnings("ignore", module="optuna")
        asked = json.loads(json.dumps({**about, "objectives": list(map(str, objectives)), "seed": seed}))
        self._study = self._opened(path)
        known = self._study.user_attrs.get("about", asked)
        different = sorted(name for name in {**asked, **known} if asked.get(name) != known.get(name))
        if different:
            raise StudyUnusable(
                f"`{path}` is a study of another {', another '.join(different)}: continue it as it began, "
                "or write to another folder"
            )
        self._study.set_user_attr("about", asked)

    def _opened(self, path: Path | None) -> Any:
        directions = ["maximize" if one.sign > 0 else "minimize" for one in self._objectives]
        if path is None:
            return self._optuna.create_study(directions=directions)
        journal = self._optuna.storages.journal
        try:
            storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(path)))
            return self._optuna.create_study(
                storage=storage, study_name="tune", load_if_exists=True, directions=directions
            )
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StudyUnusable(f"`{path}` is no study of `tune`, or of other objectives: {error}") from None

    @property
    def tried(self) -> list[Tried]:
        """All candidates that were finished, in the order asked."""
        return [
            Tried(
                one.number,
                one.user_attrs[_VALUES],
                tuple(one.values) if one.state.name == "COMPLETE" else (),
                one.user_attrs[_BROKEN],
            )
            for one in self._finished()
        ]

    def _finished(self) -> list[Any]:
        return [one for one in self._study.get_trials(deepcopy=False) if one.state.name in ("COMPLETE", "PRUNED")]

    def search(
        self, trials: int, workers: Judges, workloads: Sequence[int], old: Sequence[Figures], told: Callable[[], None]
    ) -> None:
        """Go on until so many candidates are finished. Raises as `Workers.answers`."""
        while (done := len(self._finished())) < trials:
            asked = list(self._asked(min(BATCH, trials - done), done))
            limits = self._limits(done)
            tasks = [Task(values, workloads, old, limits) for _, values in asked]
            for (trial, _), judged in zip(asked, workers.answers(tasks), strict=True):
                self._tell(trial, judged)
                told()

    def _asked(self, count: int, done: int) -> Iterator[tuple[Any, Values]]:
        self._study.sampler = self._sampler(self._seed * 1_000_003 + done)
        distributions = {one.name: self._distribution(one) for one in self._dimensions}
        for _ in range(count):
            trial = self._study.ask(distributions)
            values = {one.name: one.written(trial.params[one.name]) for one in self._dimensions}
            trial.set_user_attr(_VALUES, values)
            yield trial, values

    def _sampler(self, seed: int) -> Any:
        samplers = self._optuna.samplers
        if len(self._objectives) > 1:
            return samplers.NSGAIISampler(seed=seed, population_size=2 * BATCH)
        return samplers.TPESampler(seed=seed, multivariate=True)

    def _distribution(self, one: Dimension) -> Any:
        distributions = self._optuna.distributions
        if one.choices:
            return distributions.CategoricalDistribution(one.choices)
        if not one.grain:
            return distributions.FloatDistribution(one.low, one.high)
        step = 1 if one.is_ratio else one.grain
        return distributions.IntDistribution(int(one.low), int(one.high), log=one.is_ratio, step=step)

    def _limits(self, done: int) -> list[float]:
        if len(self._objectives) > 1 or done < ENOUGH:
            return []
        steps = [one.user_attrs[_STEPS] for one in self._finished()]
        longest = max(map(len, steps), default=0)
        return [median(one[at] for one in steps if len(one) > at) for at in range(longest)]

    def _tell(self, trial: Any, judged: Judged) -> None:
        trial.set_user_attr(_BROKEN, judged.broken)
        trial.set_user_attr(_STEPS, judged.steps)
        trial.set_constraint("broken", float(judged.broken))
        if judged.stopped:
            for step, value in enumerate(judged.steps):
                trial.report(value, step)
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(trial, [fmean(one) for one in zip(*judged.values, strict=True)])

    def best(self) -> Tried | None:
        """Of one objective; the first of equals. None where no candidate keeps the constraints."""
        sign = self._objectives[0].sign
        return max((one for one in self.tried if one.counts), key=lambda one: one.objectives[0] * sign, default=None)

    def front(self) -> list[Tried]:
        """Of several objectives: those that no other one is better than in one and not worse than in all."""
        candidates = [one for one in self.tried if one.counts]
        return [one for one in candidates if not any(self._dominates(other, one) for other in candidates)]

    def _dominates(self, one: Tried, other: Tried) -> bool:
        pairs = list(zip(self._objectives, one.objectives, other.objectives, strict=True))
        return any(wanted.better(a, b) for wanted, a, b in pairs) and not any(
            wanted.better(b, a) for wanted, a, b in pairs
        )

    def importance(self) -> dict[str, float]:
        """Of each dimension for the first objective: its part, of all of them 1 together (PED-ANOVA; Watanabe et al.,
        2023). Empty where nothing tells them apart."""
        whole = [one for one in self._finished() if one.state.name == "COMPLETE"]
        if len(self._dimensions) < 2 or len({one.values[0] for one in whole}) < 2:
            return {one.name: 1.0 for one in self._dimensions} if len(self._dimensions) == 1 else {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator()
        target = None if len(self._objectives) == 1 else lambda trial: trial.values[0]
        try:
            found = self._optuna.importance.get_param_importances(self._study, evaluator=evaluator, target=target)
        except (ValueError, RuntimeError):  # too few that differ
            return {}
        return {name: round(part, 4) for name, part in found.items()}
