"""Resources that an extender accounts for: NodeResourcesFit passes them over, whatever a policy says.

As `buildExtenders` does it (scheduler.go, v1.36): the names of all extenders' managed resources with
`ignoredByScheduler` take the place of the plugin's `ignoredResources`, in every profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from policyengine.framework.profile import Profile
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.scheduler.extenders.extender import Extender


def leave_to(extenders: Iterable[Extender], profile: Profile) -> Profile:
    """The profile with what the extenders account for left to them; the same one where that is nothing."""
    names = frozenset[str]().union(*(extender.unchecked for extender in extenders))
    found = next((plugin for plugin in profile.plugins() if isinstance(plugin, NodeResourcesFit)), None)
    if not names or found is None:
        return profile
    ignoring = found.ignoring(names)

    def swapped(plugin: Any) -> Any:
        return ignoring if plugin is found else plugin

    return replace(
        profile,
        filters=tuple(map(swapped, profile.filters)),
        scores=tuple((swapped(plugin), weight) for plugin, weight in profile.scores),
    )
