"""Who serves under another policy: it takes the place of what serves its scheduler name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policyengine.framework.profile import Profile


class NotServed(ValueError):
    """A policy is for a scheduler name that nobody serves; the message says which there are."""


def replaced(old: Sequence[Profile], new: Sequence[Profile]) -> list[Profile]:
    """The old profiles, in their order, each new one in the place of the one of its name. Raises `NotServed`."""
    names = {profile.scheduler_name for profile in old}
    for one in new:
        if one.scheduler_name not in names:
            raise NotServed(
                f"policy `{one.name}` serves scheduler `{one.scheduler_name}`, which nobody serves today; there are "
                f"{', '.join(sorted(names)) or 'none'}"
            )
    by_name: Mapping[str, Profile] = {profile.scheduler_name: profile for profile in new}
    return [by_name.get(profile.scheduler_name, profile) for profile in old]
