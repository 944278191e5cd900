"""The plugins there are on this machine: those in tree, and those that Python packages bring.

A package names its plugins in the entry point group `policyengine.plugins`; each is a `PluginEntry` under its own name.
They take part only where a policy says `use`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from policyengine.commands.options import UnusableInput
from policyengine.commands.plugin_packages import GROUP, packages_bring_plugins
from policyengine.compiler.assemble import PluginRegistry
from policyengine.framework.plugin_entry import PluginEntry
from policyengine.plugins.registry import IN_TREE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Those of a group that packages bring."""
    if not packages_bring_plugins():
        return ()
    from importlib import metadata

    return metadata.entry_points(group=group)


@cache
def installed_registry() -> PluginRegistry:
    """Every plugin a policy may name, in the order in which they are asked: in-tree ones first.

    Raises:
        UnusableInput: a package's plugin cannot be loaded, is none, or has the name of another.
    """
    return {**IN_TREE, **_installed(entry_points(group=GROUP))}


def _installed(points: Iterable[EntryPoint]) -> dict[str, PluginEntry]:
    found: dict[str, PluginEntry] = {}
    origins: dict[str, str] = {}
    for point in sorted(points, key=lambda one: one.name):
        package = point.dist.name if point.dist is not None else point.value
        name = point.name
        if name in IN_TREE:
            raise UnusableInput(
                f"package `{package}` brings a plugin called `{name}`, which is the name of one in tree"
            )
        if name in found:
            raise UnusableInput(f"packages `{origins[name]}` and `{package}` both bring a plugin called `{name}`")
        found[name] = replace(_loaded(point, package), in_base=False)
        origins[name] = package
    return found


def _loaded(point: EntryPoint, package: str) -> PluginEntry:
    try:
        entry = point.load()
    except Exception as error:  # whatever a package does while it is imported
        raise UnusableInput(f"plugin `{point.name}` of package `{package}` cannot be loaded: {error}") from error
    if not isinstance(entry, PluginEntry):
        raise UnusableInput(f"plugin `{point.name}` of package `{package}` is no `PluginEntry`: `{point.value}`")
    if entry.name != point.name:
        raise UnusableInput(
            f"plugin `{point.name}` of package `{package}` calls itself `{entry.name}`; the two names must be one"
        )
    return entry
