"""Many plays, and how their figures are distributed: a scenario with many seeds, two policies on many recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import LoadedFrom, Profile
from policyengine.language.diagnostics import Source
from policyengine.plan.history import read, without_pods
from policyengine.plan.measures import measures
from policyengine.plan.membership import Memberships, Watching
from policyengine.plan.rerun import Rerun, finished, replaced, rerun
from policyengine.plugins.registry import with_default_profile
from policyengine.policy_compiler import compile_files
from policyengine.recording.segment import UnusableRecording
from policyengine.trials.ledger import percentile
from policyengine.trials.outcome import Verdict
from policyengine.trials.simulation import Simulation
from policyengine.tuning.objective import Interval, interval

Figures = Mapping[str, Any]
Plugins = Callable[[], PluginRegistry]


@dataclass(frozen=True, slots=True)
class Seeds:
    """A scenario, played with a seed. Raises `ScenarioError`."""

    path: str
    policies: LoadedFrom | None
    """In the place of the scenario's."""
    plugins: Plugins

    def __call__(self, seed: int) -> tuple[Figures, tuple[Verdict, ...]]:
        """The figures, and whether what is expected came true."""
        registry, path = self.plugins(), Path(self.path)
        given = None if self.policies is None else _profiles(self.policies, registry)
        served = given if given is not None else Simulation(path, seed=seed, registry=registry).profiles
        watching = Watching(Memberships((), served))
        simulation = Simulation(path, given, seed=seed, registry=registry, watch=watching)
        watching.play = simulation.play
        outcome = simulation.run()
        return measures(finished(simulation.play, watching)), outcome.verdicts


class Pair(NamedTuple):
    """One recording under two policies."""

    old: Figures
    new: Figures
    notes: list[str]
    is_damaged: bool = False
    """Whether only what could be read of it was played."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """Two policies, played on a recording. Raises `UnusableRecording`, `NotServed`, `ScenarioError`, `OSError`."""

    old: LoadedFrom | None
    """None: what served in the recording."""
    new: LoadedFrom
    plugins: Plugins

    def __call__(self, path: str) -> Pair:
        """The figures of both."""
        registry = self.plugins()
        history = read(Path(path), registry)
        served = with_default_profile([*history.profiles.values()])
        before = served if self.old is None else _profiles(self.old, registry)
        new = _profiles(self.new, registry)
        after = replaced(before, new)
        if told := without_pods(history, new):
            raise UnusableRecording(f"recording {path} {told}")
        memberships = Memberships(before, after)
        runs: list[Rerun] = [rerun(history, side, memberships=memberships) for side in (before, after)]
        notes = list(history.notes)
        if runs[0].left_out:
            notes.append(f"{runs[0].left_out:,} pods stood on nodes that were never seen; they are left out")
        return Pair(measures(runs[0]), measures(runs[1]), notes, history.is_damaged)


def _profiles(loaded: LoadedFrom, registry: PluginRegistry) -> Sequence[Profile]:
    return compile_files([Source(name, text) for name, text in loaded.files.items()], loaded.params, registry).profiles


class Distribution(NamedTuple):
    """Of one figure over many runs."""

    mean: float
    sure: Interval | None
    """Of the mean."""
    least: float
    median: float
    p90: float
    most: float

    @property
    def json(self) -> dict[str, Any]:
        """As plain data; `interval` is of the mean, at 95 %."""
        found = {name: value for name, value in self._asdict().items() if name != "sure"}
        return found | {"interval": None if self.sure is None else [self.sure.low, self.sure.high]}


def distribution(values: Sequence[float]) -> Distribution:
    """Of one value at least; the runs are independent of each other."""
    ordered = sorted(values)
    return Distribution(
        fmean(ordered), interval(ordered), ordered[0], median(ordered), percentile(ordered, "p90"), ordered[-1]
    )


def distributions(runs: Sequence[Figures]) -> dict[str, Distribution]:
    """Of every figure, as one writes it: `wait.p99`; what a run does not have counts as 0 there."""
    each = [dict(_flat(one)) for one in runs]
    names = dict.fromkeys(name for one in each for name in one)
    return {name: distribution([one.get(name, 0.0) for one in each]) for name in names}


def changes(pairs: Sequence[Pair]) -> dict[str, tuple[Distribution, Distribution, Distribution]]:
    """Of every figure: old, new, and how much more it is on the same recording."""
    sides = [[dict(_flat(figures)) for figures in (one.old, one.new)] for one in pairs]
    names = dict.fromkeys(name for one in sides for side in one for name in side)
    found = {}
    for name in names:
        old, new = ([one[at].get(name, 0.0) for one in sides] for at in (0, 1))
        more = [after - before for before, after in zip(old, new, strict=True)]
        found[name] = distribution(old), distribution(new), distribution(more)
    return found


def _flat(figures: Figures, prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        whole = (f"{prefix}.{name}" if name.isidentifier() else f'{prefix}["{name}"]') if prefix else name
        if isinstance(value, Mapping):
            yield from _flat(value, whole)
        else:
            yield whole, float(value)
