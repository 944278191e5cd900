"""The policies a command serves: `--policy PATH`, several times, each a file, a folder or a manifest of ConfigMaps."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.options import UnusableInput, is_coloured

if TYPE_CHECKING:
    from policyengine.compiler.compile import CompileResult
    from policyengine.framework.profile import Profile
    from policyengine.language.policy_text import PolicyText


def load_profiles(
    paths: Sequence[Path],
    params: Mapping[str, object] | None = None,
    *,
    one_a_scheduler: bool = True,
    run_tests: bool = False,
) -> list[Profile]:
    """The profiles of `compiled`; `UnusableInput` also where two serve one scheduler name, unless that is allowed."""
    profiles = compiled(paths, params, run_tests=run_tests).profiles
    first: dict[str, Profile] = {}
    for profile in profiles if one_a_scheduler else ():
        other = first.setdefault(profile.scheduler_name, profile)
        if other is not profile:
            raise UnusableInput(
                f"scheduler `{profile.scheduler_name}` is served by two policies: `{other.name}` and `{profile.name}`; "
                "name the file of one of them, or give one another `scheduler`"
            )
    return profiles


def given_profiles(paths: Sequence[Path], params: Mapping[str, str]) -> list[Profile] | None:
    """The profiles that the command line names in the place of others; None where it names none."""
    if not paths:
        if params:
            raise click.UsageError("--param is for policies given with --policy")
        return None
    profiles = load_profiles(paths, params)
    if not profiles:
        raise UnusableInput(f"`{paths[0]}` holds no policy")
    return profiles


def compiled(
    paths: Sequence[Path], params: Mapping[str, object] | None = None, *, run_tests: bool = False
) -> CompileResult:
    """Compile every policy of files that are loaded together, with the plugins that are installed. `params` go before
    what stands beside the policies in a manifest.

    Shows the findings and raises `UnusableInput` where one has errors or (`run_tests`) fails a test in it. Raises
    `SourceError` for a file that is no text at all.
    """
    from policyengine.commands.installed_plugins import installed_registry
    from policyengine.commands.policy_files import by_text, texts_and_errors
    from policyengine.language.diagnostics import Severity, render
    from policyengine.policy_compiler import compile_files

    texts, unusable = texts_and_errors(map(str, paths))
    if unusable:
        raise unusable[0]
    values = {**params_beside(texts), **(params or {})}
    result = compile_files([text.source for text in texts], values, installed_registry())
    if run_tests:
        from policyengine.trials.policy_test import held_to_tests

        result = held_to_tests(result, installed_registry())
    errors = [one for one in result.diagnostics if one.severity is Severity.ERROR]
    broken = [(text, found) for text, found in by_text(texts, errors) if found]
    for text, found in broken:
        click.echo(render(found, text.shown, is_coloured(sys.stderr)), err=True)
    if broken:
        raise UnusableInput(f"{len(broken)} policy file{'s' * (len(broken) > 1)} cannot be loaded")
    return result


def params_beside(texts: Iterable[PolicyText]) -> dict[str, object]:
    """The values in the `params.yaml` of ConfigMap manifests, by the params' full names: what their policies are loaded
    with in a cluster.

    Raises:
        SourceError: a `params.yaml` cannot be read, or two of them give a param different values.
    """
    files = {text.params.source.file: text.params for text in texts if text.params is not None}
    if not files:
        return {}
    # Imported here: most commands meet no manifest, and YAML takes a while to load.
    from policyengine.kube.policies.params_file import read_params
    from policyengine.language.parse import SourceError
    from policyengine.plain_yaml import PlainYamlError

    found: dict[str, tuple[object, str]] = {}
    for name, file in files.items():
        try:
            given = read_params(file.source.text)
        except PlainYamlError as error:
            raise SourceError(f"`{name}` {error}") from None
        for param, one in given.items():
            before, there = found.setdefault(param, (one.value, name))
            if before != one.value:
                raise SourceError(f"`{param}` has one value in `{there}` and another in `{name}`; name one of the two")
    return {param: value for param, (value, _) in found.items()}
