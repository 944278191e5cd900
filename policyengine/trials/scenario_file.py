"""From a file, a text or plain data to a scenario and its policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from policyengine.checked_yaml import CheckedYaml, CheckedYamlError
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.profile import Profile
from policyengine.language.diagnostics import Severity, Source, render
from policyengine.language.parse import SourceError, read_source
from policyengine.plugins.registry import IN_TREE, default_profile
from policyengine.policy_compiler import compile_files
from policyengine.trials.scenario import Json, Place, Scenario, ScenarioError, read


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of scenarios."""
    text = files("policyengine.trials").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


class Written:
    """A scenario as somebody wrote it: what it says, and where, so that errors found later have their place too."""

    def __init__(self, text: str, name: str = "") -> None:
        """`name`: the file, for messages.

        Raises:
            ScenarioError: it is no YAML, not valid by the schema, or says what cannot be.
        """
        self._prefix = f"`{name}`: " if name else ""
        try:
            self._document = CheckedYaml(text, schema())
        except CheckedYamlError as error:
            raise ScenarioError(f"{self._prefix}{error}") from None
        with self.placing_errors():
            self.scenario = read(self._document.data)

    @contextmanager
    def placing_errors(self) -> Iterator[None]:
        """`ScenarioError`s that have a place, raised inside, leave with file, line and column."""
        try:
            yield
        except ScenarioError as error:
            told = self._document.wrong(error.place, str(error)) if error.place else error
            raise ScenarioError(f"{self._prefix}{told}") from None


def read_file(path: Path) -> Written:
    """Read a scenario's file. Raises `ScenarioError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"`{path}` is not UTF-8: byte {error.start}") from None
    return Written(text, str(path))


def from_data(data: Mapping[str, Any]) -> Written:
    """A scenario from plain data, as loaded from YAML or JSON. Raises `ScenarioError`."""
    try:
        text = json.dumps(data)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"a scenario is plain data: {error}") from None
    return Written(text)


def profiles_of(scenario: Scenario, folder: Path, registry: PluginRegistry = IN_TREE) -> list[Profile]:
    """The policies a scenario begins with, loaded together; the in-tree plugins where it names none.

    Raises:
        ScenarioError: a file cannot be read, a policy has errors, or two serve one scheduler name.
    """
    if not scenario.policies:
        return [default_profile()]
    return _load([(("policies", index), said) for index, said in enumerate(scenario.policies)], folder, registry)


def profiles_of_changes(
    scenario: Scenario, folder: Path, registry: PluginRegistry = IN_TREE
) -> dict[int, list[Profile]]:
    """Index of a change -> the policies it brings. Raises `ScenarioError`."""
    return {
        index: _load([((*change.place, "policy"), change.said["policy"])], folder, registry)
        for index, change in enumerate(scenario.changes)
        if change.what == "policy"
    }


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
