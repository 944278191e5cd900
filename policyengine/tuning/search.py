"""The search: Optuna asks for candidates in batches, and learns what came of them.

Rules:
1. A batch has `BATCH` candidates, however many play them, and what is asked for in it follows from the seed and from
   the batches before: so the result is the same on one process, on many and on a Ray cluster.
2. Each batch is asked for whole, in a study of its own that knows the batches before, by a sampler of its own that is
   seeded by the seed and the number of candidates before. So a study that is continued in the middle of a batch is
   asked for the same ones again, and goes on as if it had never ended.
3. With one objective a candidate that, after a look, is worse than the median of the batches before, is not played on.
4. What was finished is in the study file at once, in whatever order.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from policyengine.tuning.dimensions import Dimension
from policyengine.tuning.judging import Figures, Judged, Judges, Task
from policyengine.tuning.objective import Objective
from policyengine.tuning.tuned_policy import Values

BATCH: Final = 8
ENOUGH: Final = 16
"""Candidates that are played whole before any is stopped early."""
_NUMBER, _VALUES, _BROKEN, _STEPS = "number", "values", "broken", "steps"


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
        self._kept = self._opened(path)
        known = self._kept.user_attrs.get("about", asked)
        different = sorted(name for name in {**asked, **known} if asked.get(name) != known.get(name))
        if different:
            raise StudyUnusable(
                f"`{path}` is a study of another {', another '.join(different)}: continue it as it began, "
                "or write to another folder"
            )
        self._kept.set_user_attr("about", asked)

    def _opened(self, path: Path | None) -> Any:
        if path is None:
            return self._optuna.create_study(directions=self._directions)
        journal = self._optuna.storages.journal
        try:
            storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(path)))
            return self._optuna.create_study(
                storage=storage, study_name="tune", load_if_exists=True, directions=self._directions
            )
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            raise StudyUnusable(f"`{path}` is no study of `tune`, or of other objectives: {error}") from None

    @property
    def _directions(self) -> list[str]:
        return ["maximize" if one.sign > 0 else "minimize" for one in self._objectives]

    @property
    def tried(self) -> list[Tried]:
        """All candidates that were finished, in the order asked."""
        return [
            Tried(
                number,
                one.user_attrs[_VALUES],
                tuple(one.values) if one.state.name == "COMPLETE" else (),
                one.user_attrs[_BROKEN],
            )
            for number, one in self._finished().items()
        ]

    def _finished(self) -> dict[int, Any]:
        """By number, ascending."""
        ended = [one for one in self._kept.get_trials(deepcopy=False) if one.state.name in ("COMPLETE", "PRUNED")]
        return dict(sorted((one.user_attrs.get(_NUMBER, place), one) for place, one in enumerate(ended)))

    def search(
        self, trials: int, workers: Judges, workloads: Sequence[int], old: Sequence[Figures], told: Callable[[], None]
    ) -> None:
        """Go on until so many candidates are finished. Raises as `Workers.answers`."""
        for first in range(0, trials, BATCH):
            finished = self._finished()
            missing = [number for number in range(first, min(first + BATCH, trials)) if number not in finished]
            if missing:
                before = [one for number, one in finished.items() if number < first]
                batch = self._batch(first, before)
                asked, limits = [batch[number - first] for number in missing], self._limits(before)
                tasks = [Task(trial.user_attrs[_VALUES], workloads, old, limits) for trial in asked]
                for place, judged in workers.as_finished(tasks):
                    self._tell(asked[place], judged)
                    told()

    def _batch(self, first: int, before: Sequence[Any]) -> list[Any]:
        """The candidates after those before: trials of a study in memory."""
        samplers, seed = self._optuna.samplers, self._seed * 1_000_003 + first
        if len(self._objectives) > 1:
            sampler = samplers.NSGAIISampler(seed=seed, population_size=2 * BATCH)
        else:
            sampler = samplers.TPESampler(seed=seed, multivariate=True)
        study = self._study(before, sampler)
        distributions = {one.name: self._distribution(one) for one in self._dimensions}
        batch = [study.ask(distributions) for _ in range(BATCH)]
        for number, trial in enumerate(batch, first):
            trial.set_user_attr(_NUMBER, number)
            values = {one.name: one.written(trial.params[one.name]) for one in self._dimensions}
            trial.set_user_attr(_VALUES, values)
        return batch

    def _study(self, trials: Sequence[Any], sampler: Any = None) -> Any:
        study = self._optuna.create_study(directions=self._directions, sampler=sampler)
        study.add_trials(trials)
        return study

    def _distribution(self, one: Dimension) -> Any:
        distributions = self._optuna.distributions
        if one.choices:
            return distributions.CategoricalDistribution(one.choices)
        if not one.grain:
            return distributions.FloatDistribution(one.low, one.high)
        step = 1 if one.is_ratio else one.grain
        return distributions.IntDistribution(int(one.low), int(one.high), log=one.is_ratio, step=step)

    def _limits(self, before: Sequence[Any]) -> list[float]:
        if len(self._objectives) > 1 or len(before) < ENOUGH:
            return []
        steps = [one.user_attrs[_STEPS] for one in before]
        longest = max(map(len, steps), default=0)
        return [median(one[at] for one in steps if len(one) > at) for at in range(longest)]

    def _tell(self, trial: Any, judged: Judged) -> None:
        trial.set_user_attr(_BROKEN, judged.broken)
        trial.set_user_attr(_STEPS, judged.steps)
        trial.set_constraint("broken", float(judged.broken))
        if judged.stopped:
            for step, value in enumerate(judged.steps):
                trial.report(value, step)
            ended = trial.study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            ended = trial.study.tell(trial, [fmean(one) for one in zip(*judged.values, strict=True)])
        self._kept.add_trial(ended)

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
        finished = list(self._finished().values())
        whole = [one for one in finished if one.state.name == "COMPLETE"]
        if len(self._dimensions) < 2 or len({one.values[0] for one in whole}) < 2:
            return {one.name: 1.0 for one in self._dimensions} if len(self._dimensions) == 1 else {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator()
        target = None if len(self._objectives) == 1 else lambda trial: trial.values[0]
        try:
            study = self._study(finished)
            found = self._optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
        except (ValueError, RuntimeError):  # too few that differ
            return {}
        return {name: round(part, 4) for name, part in found.items()}
