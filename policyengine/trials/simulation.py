"""`policyengine.Simulation`: a scenario, played on virtual time by the scheduler that runs in clusters.

from policyengine import Simulation

outcome = Simulation(Path("rush-hour.yaml")).run()
assert outcome.passed
outcome.json()["summary"]["waited"]["p99"]      # seconds
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from policyengine import regular_file
from policyengine.checked_yaml import LARGEST, CheckedYaml, CheckedYamlError
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Severity, Source, render
from policyengine.language.parse import SourceError, read_source
from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.policy_compiler import compile_files
from policyengine.suggestion import closest
from policyengine.trials.outcome import Outcome, verdicts
from policyengine.trials.play import Play, Watch
from policyengine.trials.scenario import Json, Place, Scenario, ScenarioError, read
from policyengine.trials.scenario_changes import plan_changes
from policyengine.trials.trial import Driven, TrialTooLong, bare

_FILE_NAME = re.compile(r"[^\n]*\.(yaml|yml|json)")


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of scenarios."""
    text = files("policyengine.trials").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


class Written:
    """A scenario as somebody wrote it: what it says, and where, so that errors found later have their place too."""

    def __init__(self, scenario: Path | str | Mapping[str, Any]) -> None:
        """`scenario`: a file, a text of YAML, or plain data as loaded from YAML or JSON.

        Raises:
            ScenarioError: it cannot be read, is no YAML, not valid by the schema, or says what cannot be; each mistake
                on a line.
        """
        self._prefix = f"`{scenario}`: " if isinstance(scenario, Path) else ""
        try:
            self._document = CheckedYaml(_text(scenario), schema())
        except CheckedYamlError as error:
            raise ScenarioError("\n".join(f"{self._prefix}{sentence}" for sentence in error.sentences)) from None
        with self.placing_errors():
            self.scenario = read(self._document.data)

    @contextmanager
    def placing_errors(self) -> Iterator[None]:
        """`ScenarioError`s that have a place, raised inside, leave with file, line and column."""
        try:
            yield
        except ScenarioError as error:
            told = sorted((error, *error.more), key=lambda one: self._document.line_column(one.place))
            raise ScenarioError("\n".join(map(self._placed, told))) from None

    def _placed(self, error: ScenarioError) -> str:
        return f"{self._prefix}{self._document.wrong(error.place, str(error)) if error.place else error}"


def _text(scenario: Path | str | Mapping[str, Any]) -> str:
    if isinstance(scenario, str):
        if _FILE_NAME.fullmatch(scenario):
            told = f"`{scenario}` is read as the text of a scenario; for a file write `Path({scenario!r})`"
            raise ScenarioError(told)
        return scenario
    try:
        return regular_file.read(scenario, LARGEST).decode() if isinstance(scenario, Path) else json.dumps(scenario)
    except OSError as error:
        raise ScenarioError(f"cannot read `{scenario}`: {regular_file.reason(error)}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"`{scenario}` is not UTF-8: byte {error.start}") from None
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"a scenario is plain data: {error}") from None


def _load(policies: Sequence[tuple[Place, Json]], folder: Path, registry: PluginRegistry) -> list[Profile]:
    """Compile policies that are loaded together. Raises `ScenarioError`."""
    sources = [_source(place, said, folder) for place, said in policies]
    first_place = policies[0][0]
    result = compile_files(sources, registry=registry)
    errors = [one for one in result.diagnostics if one.severity is Severity.ERROR]
    if errors:
        at = next(index for index, source in enumerate(sources) if source.file == errors[0].file)
        shown = render([one for one in errors if one.file == errors[0].file], sources[at], False)
        raise ScenarioError(f"the policy cannot be loaded\n{shown}", policies[at][0])
    first: dict[str, Profile] = {}
    for profile in result.profiles:
        earlier = first.setdefault(profile.scheduler_name, profile)
        if earlier is not profile:
            message = f"policies `{earlier.name}` and `{profile.name}` both serve scheduler `{profile.scheduler_name}`"
            raise ScenarioError(message, first_place)
    if not first:
        raise ScenarioError("there is no policy in it", first_place)
    return list(first.values())


def _source(place: Place, said: Json, folder: Path) -> Source:
    if "text" in said:
        return Source(".".join(map(str, place)), said["text"])
    try:
        return read_source(folder / said["file"])
    except SourceError as error:
        raise ScenarioError(str(error), place) from None


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
        driven: Driven = bare,
        made: Callable[[Scenario, Sequence[Profile], int, Watch | None, Driven], Play] = Play,
    ) -> None:
        """Read a scenario, and compile its policies.

        Arguments:
            scenario: a file, a text of YAML, or plain data as loaded from one.
            profiles: policies to play it with instead of its own; what it changes of policies is left out then.
            seed: instead of its own.
            folder: what files of policies are relative to; the scenario's folder, or the current one.
            watch: is told of everything that happens; see `play.Watch`.
            registry: the plugins that policies may name.
            driven: see `trial.Trial`.
            made: makes the play: one with more on its agenda.

        Raises:
            ScenarioError: the scenario or a policy cannot be used; file, line and column where there are some.
        """
        self._written = Written(scenario)
        played = self._written.scenario
        self.scenario = played
        self.seed = played.seed if seed is None else seed
        if folder is None:
            folder = scenario.parent if isinstance(scenario, Path) else Path()
        replaced: dict[int, list[Profile]] = {}
        with self._written.placing_errors():
            if profiles is None:
                named: list[tuple[Place, Json]] = [(("policies", at), said) for at, said in enumerate(played.policies)]
                profiles = _load(named, folder, registry) if named else [default_profile()]
                for index, change in enumerate(played.changes):
                    if change.what == "policy":
                        said = ((*change.place, "policy"), change.said["policy"])
                        replaced[index] = _load([said], folder, registry)
            self.profiles = tuple(profiles)
            self._refuse_unserved([*self.profiles, *(one for some in replaced.values() for one in some)])
            self.play = made(played, self.profiles, self.seed, watch, driven)
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
        total = sum(count or 0 for count in counts)
        return min(1.0, len(self.play.ledger.pods) / total) if total and all(counts) else 0.0
