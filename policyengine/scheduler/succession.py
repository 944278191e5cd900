"""Did a rule change when one policy took over from another?

A refused pod is woken only when one of its refusers is gone or is not what it was. When that cannot be told the
rule counts as changed: one attempt more does no harm, a pod that sleeps through its cure does.
"""

from __future__ import annotations

from policyengine.framework.plugin import Plugin
from policyengine.framework.profile import Profile


def rules_changed(before: Profile, after: Profile, names: frozenset[str]) -> bool:
    """Whether one of the plugins or rules of these names is another one now. True for no names: an error, or a
    refusal by nobody in particular.
    """
    return not names or any(_changed(before, after, name) for name in names)


def queue_changed(before: Profile, after: Profile) -> bool:
    """Whether pods may have to wait elsewhere or in another order. True where that cannot be told."""
    ours, theirs = before.fingerprints, after.fingerprints
    return ours is None or theirs is None or ours.queue != theirs.queue


def _changed(before: Profile, after: Profile, name: str) -> bool:
    ours, theirs = before.fingerprints, after.fingerprints
    if ours is None or theirs is None:
        return not _same(_named(before, name), _named(after, name))
    return ours.rules.get(name, ours.queue) != theirs.rules.get(name, theirs.queue)


def _named(profile: Profile, name: str) -> list[Plugin]:
    return [plugin for plugin in profile.plugins() if plugin.name == name]


def _same(before: list[Plugin], after: list[Plugin]) -> bool:
    return len(before) == len(after) and all(map(_equal, before, after))


def _equal(before: Plugin, after: Plugin) -> bool:
    """Where nobody has said what rules were made from: a `fingerprint` of their own, plugins their arguments."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    fingerprint = getattr(before, "fingerprint", None)
    if fingerprint is not None:
        return bool(fingerprint == getattr(after, "fingerprint", None))
    if before == after:
        return True
    arguments = getattr(before, "__dict__", None)
    return arguments is not None and arguments == getattr(after, "__dict__", None)
