"""What of a loaded policy can be set from outside, and which labels its rules ask for: for advice about a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from policyengine.compiler.params import ParamError, convert
from policyengine.framework.plugin_entry import ArgumentError
from policyengine.framework.profile import Profile, RangedParam
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in, walk
from policyengine.language.types import Kind
from policyengine.language.values import display

GRAINS = {
    Kind.INT: 1,
    Kind.DOUBLE: 0,
    Kind.CPU: 10,
    Kind.MEMORY: 1 << 20,
    Kind.STORAGE: 1 << 20,
    Kind.DURATION: 10**9,
}
"""Kinds of numbers, and of what one writes multiples."""


@dataclass(frozen=True, slots=True)
class PolicyTuning:
    """A checked policy and the values that its params have."""

    policy: ir.Policy
    values: Mapping[str, object]
    made: Callable[[Mapping[str, object]], Profile]
    """The profile with other values."""

    def params(self) -> Iterator[RangedParam]:
        """The numbers that have a range, in the order declared."""
        for param in self.policy.params:
            value, low, high = self.values[param.name], param.minimum, param.maximum
            grain = GRAINS.get(param.type.kind)
            if grain is not None and _is_number(value) and _is_number(low) and _is_number(high):
                yield RangedParam(param.name, value, low, high, grain)

    def text(self, name: str, value: float) -> str | None:
        """The value as one writes it; None where no text stands for it."""
        type_ = next(param.type for param in self.policy.params if param.name == name)
        text = display(value, type_)
        try:
            return text if convert(text, type_, name) == value else None
        except ParamError:
            return None

    def tuned(self, name: str, value: float) -> Profile | None:
        """The policy's profile with another value of one param; None where a plugin refuses it."""
        try:
            return self.made({**self.values, name: value})
        except ArgumentError:
            return None

    def labels_read(self, rule: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(of the pod, of the node): the keys of labels that a filter asks for by name, sorted."""
        lets = {let.name: let.value for let in self.policy.lets}
        found: dict[str, set[str]] = {"pod": set(), "node": set()}
        for one in self.policy.filters:
            for expression in expressions_in(one) if one.name == rule else ():
                for part in walk(expression, lets.get):
                    if isinstance(part, ir.Index) and isinstance(part.key, ir.Const):
                        owner = part.operand.path if isinstance(part.operand, ir.Field) else ()
                        if len(owner) == 2 and owner[0] in found and owner[1] == "labels":
                            found[owner[0]].add(str(part.key.value))
        return tuple(sorted(found["pod"])), tuple(sorted(found["node"]))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
