"""Which rule made the difference: the new policy with one change undone, for each change.

What differs between two policies is cut into rules and plugins, by name, and what the queue is made of. Undoing a
change takes from the old policy all that bears that name: a rule that is new is left out, one that is gone is put
back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from msgspec import Struct

from policyengine.compiler.assemble import PluginRegistry, tier_weights
from policyengine.compiler.params import param_values
from policyengine.framework.profile import Profile
from policyengine.framework.quota import Quotas
from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import checked_files

T = TypeVar("T")
MOST: Final = 30
"""Changes that are played; each takes as long as the new policy alone."""
QUEUE, PREEMPT = ":queue", ":preempt"
"""No rule is called so."""
_PLACES: Final = ("span", "file", "text", "written")
"""Fields of parts of policies that say where they stand, and how they were written."""
_OF_QUEUE: Final = ("queue_key", "counts_attempts", "fair", "queue", "gangs")
"""Fields of profiles that say in which order pods come, which together, and how long they wait between attempts."""
_NAMED: Final = ("pre_enqueue", "filters", "post_filters", "reserve", "permit", "pre_bind")
"""Fields that hold plugins and rules, each with a name."""


@dataclass(frozen=True, slots=True)
class Undone:
    """The new policies with one change undone."""

    rule: str
    """`two-pods`, `the queue`, `preempt`; with the scheduler's name before it where several are served."""
    how: str
    """`left out`, `put back`, or `as before`."""
    profiles: Sequence[Profile]


def changes(before: Sequence[Profile], after: Sequence[Profile], registry: PluginRegistry = IN_TREE) -> list[Undone]:
    """The new profiles, once for each change, in the order in which the policies are asked. `before` and `after` serve
    the same scheduler names in the same order."""
    found = []
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        prefix = f"{new.scheduler_name}: " if len(after) > 1 else ""
        for rule, how, profile in _undone(old, new, registry) if old.policy_hash != new.policy_hash else ():
            found.append(Undone(prefix + rule, how, [*after[:place], profile, *after[place + 1 :]]))
    return found


def _undone(old: Profile, new: Profile, registry: PluginRegistry) -> Iterator[tuple[str, str, Profile]]:
    was, is_ = _said(old, registry), _said(new, registry)
    names = [dict.fromkeys(plugin.name for plugin in profile.plugins()) for profile in (new, old)]
    for name in names[0] | names[1]:
        if name not in names[1]:
            yield name, "left out", _with_rule(old, new, name)
        elif name not in names[0]:
            yield name, "put back", _with_rule(old, new, name)
        elif was.get(name) != is_.get(name) or _weight(old, name) != _weight(new, name):
            yield name, "as before", _with_rule(old, new, name)
    if was.get(PREEMPT) != is_.get(PREEMPT):
        how = "put back" if new.preempt is None else "left out" if old.preempt is None else "as before"
        yield "preempt", how, _marked(replace(new, preempt=old.preempt), "preempt")
    if was.get(QUEUE) != is_.get(QUEUE):
        fields = {field: getattr(old, field) for field in _OF_QUEUE}
        yield "the queue", "as before", _marked(replace(new, **fields), "the queue")


def _weight(profile: Profile, name: str) -> int | None:
    """Of the score; a tier's follows from the others."""
    return None if name in profile.tiers else next((each for one, each in profile.scores if one.name == name), None)


def _said(profile: Profile, registry: PluginRegistry) -> dict[str, object]:
    """What the policy's text says of each rule and plugin, of preemption and of its queue: equal where no decision can
    tell the difference. Lets, functions and params count where they are used. Nothing for a profile without a text."""
    loaded = profile.loaded_from
    sources = [Source(name, text) for name, text in loaded.files.items()]
    policies = checked_files(sources, registry)[0] if sources else []
    policy = next(
        (one for one in policies if (one.name, one.scheduler) == (profile.name, profile.scheduler_name)), None
    )
    if policy is None:
        return {}
    plain = _Plain({let.name: let.value for let in policy.lets}, param_values(policy.params, loaded.params))
    found: dict[str, Any] = {QUEUE: (plain.of(policy.queue), plain.of(policy.gangs)), PREEMPT: plain.of(policy.preempt)}
    rules: tuple[ir.Rule | ir.PluginUse, ...] = (*policy.filters, *policy.scores, *policy.quotas, *policy.permits)
    for rule in (*rules, *policy.uses):
        found[rule.name] = (*found.get(rule.name, ()), plain.of(rule))
    return found


class _Plain:
    """Parts of a checked policy as tuples that are equal where they mean the same, wherever they are written."""

    def __init__(self, lets: Mapping[str, ir.Expr], params: Mapping[str, object]) -> None:
        self._lets, self._params = lets, params
        self._known: dict[str, object] = {}

    def of(self, part: object) -> object:
        if isinstance(part, ir.LetRef):
            if part.name not in self._known:
                self._known[part.name] = self.of(self._lets[part.name])
            return self._known[part.name]
        if isinstance(part, ir.ParamRef):
            return self._params[part.name]
        if isinstance(part, Struct):
            fields = (getattr(part, name) for name in part.__struct_fields__ if name not in _PLACES)
            return (type(part).__name__, *map(self.of, fields))
        if isinstance(part, Mapping):
            return tuple((name, self.of(value)) for name, value in sorted(part.items()))
        return tuple(map(self.of, part)) if isinstance(part, list | tuple) else part


def _with_rule(old: Profile, new: Profile, name: str) -> Profile:
    """The new profile with all that bears the name as the old one has it."""
    fields: dict[str, Any] = {field: _taken(getattr(old, field), getattr(new, field), name) for field in _NAMED}
    scores = _taken(old.scores, new.scores, name, lambda one: one[0].name)
    tiers = (new.tiers - {name}) | (old.tiers & {name})
    weights = tier_weights([None if plugin.name in tiers else weight for plugin, weight in scores])
    scored = tuple((plugin, weight) for (plugin, _), weight in zip(scores, weights, strict=True))
    quotas = Quotas(_taken(old.quotas.rules, new.quotas.rules, name))
    kinds = tuple(dict.fromkeys((*new.kinds, *old.kinds)))
    return _marked(replace(new, **fields, scores=scored, tiers=tiers, quotas=quotas, kinds=kinds), name)


def _taken(
    old: Sequence[T], new: Sequence[T], name: str, named: Callable[[Any], str] = lambda one: one.name
) -> tuple[T, ...]:
    """Those of the new one that bear other names, and those of the old one that bear this; in their places."""
    theirs = [one for one in old if named(one) == name]
    place = next((at for at, one in enumerate(new) if named(one) == name), len(new))
    others = [one for one in new if named(one) != name]
    return (*others[:place], *theirs, *others[place:])


def _marked(profile: Profile, name: str) -> Profile:
    """Told apart from the new policy: no two of one hash decide otherwise."""
    return replace(profile, policy_hash=f"{profile.policy_hash} without {name}", fingerprints=None)
