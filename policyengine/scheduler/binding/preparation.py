"""What a placed pod waits for at PreBind: the patches of its plans, then the plugins' word that all is prepared.

Rules:
1. The patches of one plan are made one after the other; the plans of several plugins go on side by side.
2. A plugin is asked only once the watch shows every object at least as new as the patch of it made it: before, it
   would check the past.
3. A plugin that has once said that all is prepared is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from policyengine.framework.reservation import ObjectPatch, Plan, PreBindPlugin

if TYPE_CHECKING:
    from policyengine.cluster.view import ClusterView


class Step:
    """One plugin's part of the preparation."""

    def __init__(self, plugin: PreBindPlugin, plan: Plan, now: float) -> None:
        self.plugin = plugin
        self.plan = plan
        self.deadline = now + plan.timeout
        """Seconds."""
        self.made = 0
        """Patches that the server has taken."""
        self.is_done = False
        self._versions: dict[tuple[str, str], tuple[str, str]] = {}
        """(kind, key) -> the version before the first patch of it, and after the last."""

    def next_patch(self) -> ObjectPatch | None:
        """The patch to be made now; None when all are made."""
        if self.made == len(self.plan.patches):
            return None
        patch = self.plan.patches[self.made]
        before = self._versions.get((patch.kind, patch.key))
        return patch if before is None else replace(patch, resource_version=before[1])

    def patched(self, version: str) -> None:
        """The server has taken the patch; the object's version is now this one."""
        patch = self.plan.patches[self.made]
        first = self._versions.get((patch.kind, patch.key), (patch.resource_version, ""))[0]
        self._versions[patch.kind, patch.key] = (first, version)
        self.made += 1

    def has_arrived(self, view: ClusterView) -> bool:
        """Whether all patches are made, and seen. An object that is gone has been seen as new as it gets."""
        if self.made < len(self.plan.patches):
            return False
        for (kind, key), (before, after) in self._versions.items():
            item = view.objects(kind).get(key)
            if item is not None and _is_older(item.metadata.resource_version, before, after):
                return False
        return True


class Preparation:
    """A pod's steps, in the order of the profile's PreBind plugins."""

    def __init__(self, plans: Sequence[tuple[PreBindPlugin, Plan]], now: float) -> None:
        self.steps = [Step(plugin, plan, now) for plugin, plan in plans]
        self.kinds = frozenset(kind for plugin, _ in plans for kind in plugin.kinds)
        self.ask_again = False

    @property
    def is_done(self) -> bool:
        """Whether every plugin has said that all is prepared."""
        return all(step.is_done for step in self.steps)

    def step(self, plugin: str) -> Step:
        """The plugin's part."""
        return next(step for step in self.steps if step.plugin.name == plugin)

    def open(self) -> Iterator[Step]:
        """The steps that are not done."""
        return (step for step in self.steps if not step.is_done)

    def due(self) -> float:
        """When something is to be done about it, in seconds; inf for never."""
        return 0.0 if self.ask_again else min((step.deadline for step in self.open()), default=inf)


def _is_older(seen: str, before: str, after: str) -> bool:
    """Whether a version comes before the one a patch made; versions that are no numbers cannot be compared, so that
    any but the one before the patch will do."""
    if seen.isdecimal() and after.isdecimal():
        return int(seen) < int(after)
    return seen == before != after
