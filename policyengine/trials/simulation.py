"""`policyengine.Simulation`: a scenario, played on virtual time by the scheduler that runs in clusters.

from policyengine import Simulation

outcome = Simulation(Path("rush-hour.yaml")).run()
assert outcome.passed
outcome.json()["summary"]["waited"]["p99"]      # seconds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.language.suggestion import closest
from policyengine.plugins.registry import IN_TREE
from policyengine.trials.changes import plan_changes
from policyengine.trials.expectations import verdicts
from policyengine.trials.outcome import Outcome
from policyengine.trials.play import Play, Watch
from policyengine.trials.scenario import ScenarioError
from policyengine.trials.scenario_file import (
    Written,
    from_data,
    profiles_of,
    profiles_of_changes,
    read_file,
)
from policyengine.trials.trial import TrialTooLong

Told = Callable[[float], None]
"""Is told how far a run is: 0 to 1."""


class Simulation:
    """One run of a scenario. The same scenario, policies and seed give the same run."""

    def __init__(
        self,
        scenario: Path | str | Mapping[str, Any],
        profiles: Sequence[Profile] | None = None,
        *,
        seed: int | None = None,
        folder: Path | None = None,
        watch: Watch | None = None,
        registry: PluginRegistry = IN_TREE,
    ) -> None:
        """Read a scenario, and compile its policies.

        Arguments:
            scenario: a file, a text of YAML, or plain data as loaded from one.
            profiles: policies to play it with instead of its own; what it changes of policies is left out then.
            seed: instead of its own.
            folder: what files of policies are relative to; the scenario's folder, or the current one.
            watch: is told of everything that happens; see `play.Watch`.
            registry: the plugins that policies may name.

        Raises:
            ScenarioError: the scenario or a policy cannot be used; file, line and column where there are some.
        """
        self._written = _written(scenario)
        played = self._written.scenario
        self.scenario = played
        self.seed = played.seed if seed is None else seed
        if folder is None:
            folder = scenario.parent if isinstance(scenario, Path) else Path()
        with self._written.placing_errors():
            replaced = {} if profiles is not None else profiles_of_changes(played, folder, registry)
            self.profiles = tuple(profiles if profiles is not None else profiles_of(played, folder, registry))
            self._refuse_unserved([*self.profiles, *(one for some in replaced.values() for one in some)])
            self.play = Play(played, self.profiles, self.seed, watch)
            plan_changes(self.play, replaced)

    def _refuse_unserved(self, profiles: Sequence[Profile]) -> None:
        served = [profile.scheduler_name for profile in profiles]
        for template in self.scenario.pods:
            wanted = template.given.get("scheduler")
            if wanted is not None and wanted not in served:
                close = closest(wanted, served)
                hint = f"; did you mean `{close}`?" if close else f"; served are {', '.join(sorted(set(served)))}"
                raise ScenarioError(f"no policy serves scheduler `{wanted}`{hint}", (*template.place, "scheduler"))

    def step(self) -> bool:
        """Play one moment; whether there was one left. Raises `ScenarioError`."""
        with self._written.placing_errors():
            try:
                return self.play.step()
            except TrialTooLong as error:
                raise ScenarioError(str(error)) from None

    def run(self, told: Told | None = None) -> Outcome:
        """Play it to its end, and look whether what it expects has come true. Raises `ScenarioError`."""
        while self.step():
            if told is not None:
                told(self._progress())
        with self._written.placing_errors():
            found = verdicts(self.scenario, self.play.ledger, self.play.at)
        return Outcome(self.scenario, self.seed, self.profiles, self.play.at, self.play.ledger, tuple(found))

    def _progress(self) -> float:
        """By time where a duration is known, else by pods that came, as far as their number is."""
        if self.scenario.duration:
            return self.play.at / self.scenario.duration
        counts = [pods.arrival.count for pods in self.scenario.pods]
        return len(self.play.ledger.pods) / sum(count or 0 for count in counts) if all(counts) else 0.0


def _written(scenario: Path | str | Mapping[str, Any]) -> Written:
    if isinstance(scenario, Path):
        return read_file(scenario)
    return Written(scenario) if isinstance(scenario, str) else from_data(scenario)
