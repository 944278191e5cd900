"""A checked policy's plugins: its base, changed by `use` and `disable`, in kube-scheduler's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from policyengine.framework.plugin import MAX_NODE_SCORE, Plugin, extends
from policyengine.framework.plugin_entry import ArgumentError, PluginEntry
from policyengine.language import ir
from policyengine.language.checking.plugin_checks import PluginFacts

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Chosen:
    """One plugin of a policy. `weight` None: it gives no score here."""

    entry: PluginEntry
    weight: int | None
    arguments: Mapping[str, object]


PluginRegistry = Mapping[str, PluginEntry]
"""The plugins there are, by name, in the order in which they are asked."""


def plugin_facts(registry: PluginRegistry) -> dict[str, PluginFacts]:
    """What the checker is told of the plugins."""
    return {
        name: PluginFacts(entry.arguments, entry.filters, entry.scores, entry.default_weight, entry.in_base)
        for name, entry in registry.items()
    }


def assemble(policy: ir.Policy, params: Mapping[str, object], registry: PluginRegistry) -> list[tuple[Plugin, Chosen]]:
    """The built plugins of a policy, in the registry's order.

    Raises:
        ArgumentError: arguments that the plugin refuses.
    """
    chosen = _base(policy, registry)
    for use in policy.uses:
        chosen[use.name] = _used(use, params, registry)
    for name in policy.disabled:
        chosen.pop(name, None)
    return [(entry.build(chosen[name].arguments), chosen[name]) for name, entry in registry.items() if name in chosen]


def extending(plugins: Iterable[Plugin], point: type[P]) -> tuple[P, ...]:
    """Those that implement an extension point."""
    return tuple(plugin for plugin in plugins if extends(plugin, point))


def _base(policy: ir.Policy, registry: PluginRegistry) -> dict[str, Chosen]:
    if policy.base == "none":
        return {}
    offered = {name: entry for name, entry in registry.items() if entry.in_base}
    if policy.base == "filters":
        return {name: Chosen(entry, None, {}) for name, entry in offered.items() if entry.filters or not entry.scores}
    return {name: Chosen(entry, entry.default_weight, {}) for name, entry in offered.items()}


def _used(use: ir.PluginUse, params: Mapping[str, object], registry: PluginRegistry) -> Chosen:
    entry = registry[use.name]
    weight = entry.default_weight if use.weight is None else weight_of(use.weight, params)
    return Chosen(entry, weight if entry.scores else None, use.arguments)


_MOST_WEIGHT = (1 << 63) // MAX_NODE_SCORE // 16
"""All weights together: a total is multiplied by 10 where it is told to kube-scheduler."""


def score_weights(scores: Sequence[ir.Score], params: Mapping[str, object], beside: int = 0) -> list[int]:
    """The weights of a policy's scores; `beside`: the sum of those of its plugins.

    A tier's is so large that one point of it is more than a node can have of all that counts less: of the weighted
    scores, and the tiers written after it. So sums are compared as tier by tier, then by the rest.

    Raises:
        ArgumentError: the sums would leave 64 bits.
    """
    weights = [None if score.weight is None else weight_of(score.weight, params) for score in scores]
    found = tier_weights(weights, beside)
    if beside + sum(found) > _MOST_WEIGHT:
        raise ArgumentError("tiers and weights come to more than 64 bits hold: write smaller weights, or fewer tiers")
    return found


def tier_weights(weights: Sequence[int | None], beside: int = 0) -> list[int]:
    """The weights with those of the tiers, which are given as None, in the order in which they are written."""
    found = [weight or 0 for weight in weights]
    below = beside + sum(found)
    for place in reversed(range(len(weights))):
        if weights[place] is None:
            found[place] = MAX_NODE_SCORE * below + 1
            below += found[place]
    return found


def weight_of(weight: int | ir.ParamRef, params: Mapping[str, object]) -> int:
    """A weight: the literal, or the value of the param it names."""
    value: Any = params[weight.name] if isinstance(weight, ir.ParamRef) else weight
    return int(value)
