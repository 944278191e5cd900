"""The policies a command serves: `--policy PATH`, several times, each a file, a folder or a manifest of ConfigMaps."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyengine.commands.colour import is_coloured
from policyengine.commands.unusable import UnusableInput

if TYPE_CHECKING:
    from policyengine.compiler.compile import CompileResult
    from policyengine.framework.profile import Profile


def _given(_context: click.Context, _option: click.Parameter, written: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"`{one}` is not of the form NAME=VALUE")
        if name in given:
            raise click.BadParameter(f"`{name}` is given twice")
        given[name] = value
    return given


param_option = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_given,
    help='Another value of a param: headroom=4Gi, safe.zones=["a"] for one of a library; may be repeated.',
)
"""`--param`, as a mapping of names to texts."""


def load_profiles(
    paths: Sequence[Path],
    params: Mapping[str, object] | None = None,
    *,
    one_a_scheduler: bool = True,
    run_tests: bool = False,
) -> list[Profile]:
    """The profiles of `compiled`; `UnusableInput` also where two serve one scheduler name, unless that is allowed."""
    profiles = compiled(paths, params, run_tests=run_tests).profiles
    if one_a_scheduler:
        _refuse_rivals(profiles)
    return profiles


def compiled(
    paths: Sequence[Path], params: Mapping[str, object] | None = None, *, run_tests: bool = False
) -> CompileResult:
    """Compile every policy of files that are loaded together, with the plugins that are installed. `params` go before
    what stands beside the policies in a manifest.

    Shows the findings and raises `UnusableInput` where one has errors or (`run_tests`) fails a test in it. Raises
    `SourceError` for a file that is no text at all.
    """
    from policyengine.catalogue import compile_files
    from policyengine.commands.installed_plugins import installed_catalogue
    from policyengine.commands.params_beside import params_beside
    from policyengine.commands.policy_files import by_text, texts_and_errors
    from policyengine.language.diagnostics import Severity, render

    texts, unusable = texts_and_errors(map(str, paths))
    if unusable:
        raise unusable[0]
    values = {**params_beside(texts), **(params or {})}
    result = compile_files([text.source for text in texts], values, installed_catalogue())
    if run_tests:
        from policyengine.trials.policy_gate import held_to_tests

        result = held_to_tests(result, installed_catalogue())
    errors = [one for one in result.diagnostics if one.severity is Severity.ERROR]
    broken = [(text, found) for text, found in by_text(texts, errors) if found]
    for text, found in broken:
        click.echo(render(found, text.shown, is_coloured(sys.stderr)), err=True)
    if broken:
        raise UnusableInput(f"{len(broken)} policy file{'s' * (len(broken) > 1)} cannot be loaded")
    return result


def _refuse_rivals(profiles: Sequence[Profile]) -> None:
    first: dict[str, Profile] = {}
    for profile in profiles:
        rival = first.setdefault(profile.scheduler_name, profile)
        if rival is not profile:
            raise UnusableInput(
                f"scheduler `{profile.scheduler_name}` is served by two policies: `{rival.name}` and `{profile.name}`; "
                "name the file of one of them, or give one another `scheduler`"
            )
