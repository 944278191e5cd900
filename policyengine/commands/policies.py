"""The policies a command serves: `--policy PATH`, several times, each a file or a folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from policyengine.framework.profile import Profile


class UnusablePolicy(click.ClickException):
    """A policy that cannot be loaded; its findings were shown."""

    exit_code = 2


def load_profiles(paths: Sequence[Path]) -> list[Profile]:
    """Compile every policy; shows the findings and raises `UnusablePolicy` where one has errors.

    Raises `SourceError` for a file that is no text at all.
    """
    from policyengine.catalogue import compile_text
    from policyengine.language.diagnostics import Severity, render
    from policyengine.language.parse import read_source

    profiles: dict[str, Profile] = {}
    broken = 0
    for path in _files(paths):
        source = read_source(path)
        result = compile_text(source.text, source.file)
        errors = [one for one in result.diagnostics if one.severity is Severity.ERROR]
        if errors:
            click.echo(render(errors, result.source, sys.stderr.isatty()), err=True)
            broken += 1
        for profile in result.profiles:
            if profile.scheduler_name in profiles:
                raise UnusablePolicy(
                    f"`{path}`: scheduler `{profile.scheduler_name}` is served by another policy already"
                )
            profiles[profile.scheduler_name] = profile
    if broken:
        raise UnusablePolicy(f"{broken} policy file{'s' * (broken > 1)} cannot be loaded")
    return list(profiles.values())


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and the policy files in the folders named."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.policy"))
            if not inside:
                raise UnusablePolicy(f"`{path}` holds no `.policy` file")
            found += inside
        else:
            found.append(path)
    return found
