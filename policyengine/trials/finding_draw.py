"""Draws clusters of what a policy reads: its numbers and what is next to them, its texts, its keys."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policyengine.language import ir
from policyengine.language.checking.given_objects import NODE_FIELDS, POD_FIELDS, wrong_value
from policyengine.language.ir.ir_walk import walk
from policyengine.language.schema import OBJECTS
from policyengine.language.types import Kind, Type
from policyengine.language.values import display, format_timestamp
from policyengine.trials.finding_example import NODES, POD, Claim, Example, is_literal
from policyengine.trials.policy_test import START


class Draw:
    """Draws clusters of what a policy reads."""

    def __init__(self, policy: ir.Policy, about: Iterable[ir.Expr], claim: Claim, chance: random.Random) -> None:
        """`about`: the expressions that read the cluster; `claim`: what else matters."""
        self._policy, self._chance = policy, chance
        lets = {let.name: let.value for let in policy.lets}
        # What is nothing but a constant, such as an amount of a quota, is compared with nothing.
        parts = [part for one in about if not isinstance(one, ir.Const) for part in walk(one, lets.get)]
        consts = [part for part in parts if isinstance(part, ir.Const)]
        self._numbers = {kind: [0, 1] for kind in Kind}
        for part in consts:
            if isinstance(part.value, int | float) and not isinstance(part.value, bool) and abs(part.value) < 2**60:
                number = int(part.value)
                self._numbers[part.type.kind] += [number - 1, number, number + 1, number * 2]
        for name, amount in claim.amounts:
            self._numbers[Kind(name) if name in _AMOUNTS else Kind.INT] += [amount] * 3
        self._numbers[Kind.INT] += self._numbers[Kind.DOUBLE]
        self._keys = sorted(
            {key for part in parts if (key := _key(part)) is not None}
            | {name for name, _ in claim.amounts if "/" in name}
        )
        texts = {part.value for part in consts if isinstance(part.value, str)} - set(self._keys)
        self._texts = [*sorted(texts), "x", "0", "1"]
        paths = {part.path for part in parts if isinstance(part, ir.Field) and len(part.path) > 1}
        names = {path[1] for path in paths} | {part.name for part in parts if isinstance(part, ir.Select | ir.Has)}
        names |= {"labels", *claim.reads} if self._keys else set(claim.reads)
        self._read = {
            "node": [name for name in NODE_FIELDS if name in names or (name == "allocatable" and "free" in names)],
            "pod": [
                name
                for name in POD_FIELDS
                if name in names - {"uid"} or (name == "requests" and {"free", "used"} & names)
            ],
        }

    def example(self, number: int, nodes: int, pods: int, after: Sequence[int]) -> Example:
        """A cluster; the params of every other one are drawn too."""
        chance = self._chance
        names = NODES[:nodes] if nodes <= len(NODES) else [f"n{at}" for at in range(nodes)]
        found: Example = {
            "standing": {},
            "params": self._params() if number % 2 else {},
            "nodes": {name: self._node() for name in names},
            "pods": {name: self._fields("pod", POD_FIELDS) for name in (POD, "q")[:pods]},
        }
        counts = [0, 0, 0, 1, 1, 2, *[n for n in self._numbers[Kind.INT] if 2 < n <= 12][:3]]
        found["standing"] = {
            f"{name}{at}": {"on": name, **self._fields("pod", POD_FIELDS)}
            for name in names
            for at in range(chance.choice(counts))
        }
        if after:
            found["after"] = chance.choice(after)
        return found

    def _node(self) -> dict[str, object]:
        fields = self._fields("node", NODE_FIELDS)
        amounts = fields.get("allocatable", {"cpu": "64", "memory": "256Gi"})
        return {**fields, "allocatable": {**amounts, "pods": 110}} if isinstance(amounts, dict) else fields

    def _params(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for param in self._policy.params:
            low, high = param.minimum, param.maximum
            some = param.values or [value for value in (low, high) if value is not None]
            if some and is_literal(param):
                found[param.name] = self._chance.choice([param.default, *some])
        return found

    def _fields(self, kind: str, known: Mapping[str, Type]) -> dict[str, Any]:
        drawn = {name: self._value(known[name], 0) for name in self._read[kind] if self._chance.random() < 0.6}
        fields = {name: value for name, value in drawn.items() if wrong_value(value, known[name]) is None}
        return {name: value for name, value in fields.items() if name not in _OTHERWISE or "containers" not in fields}

    def _value(self, type_: Type, depth: int) -> Any:
        chance, numbers = self._chance, self._numbers[type_.kind]
        match type_.kind:
            case Kind.BOOL:
                return chance.random() < 0.5
            case Kind.INT:
                return chance.choice(numbers)
            case Kind.CPU:
                return f"{max(chance.choice(numbers), 0)}m"
            case Kind.MEMORY | Kind.STORAGE:
                return str(max(chance.choice(numbers), 0))
            case Kind.TIMESTAMP:
                return format_timestamp(START - max(chance.choice(self._numbers[Kind.DURATION]), 0) - 10**9)
            case Kind.DURATION:
                return display(max(chance.choice(numbers), 10**9), type_)
            case Kind.OPTIONAL:
                return self._value(type_.args[0], depth)
            case Kind.LIST if depth < 3:
                return [self._value(type_.args[0], depth + 1) for _ in range(chance.choice((0, 1, 2)))]
            case Kind.MAP:
                return {key: self._text() for key in self._keys if chance.random() < 0.8}
            case Kind.OBJECT if type_.name in ("resources", "limits"):
                amounts = {name: self._value(Type(Kind(name)), depth) for name in _AMOUNTS}
                extended = {key: max(chance.choice(self._numbers[Kind.INT]), 0) for key in self._keys if "/" in key}
                return {name: one for name, one in {**amounts, **extended}.items() if chance.random() < 0.8}
            case Kind.OBJECT if depth < 3:
                return {name: self._value(field.type, depth + 1) for name, field in OBJECTS[type_.name].fields.items()}
            case _:
                return self._text()

    def _text(self) -> str:
        numbers = [str(number) for number in self._numbers[Kind.INT]]
        return self._chance.choice(self._texts if self._chance.random() < 0.7 else numbers)


_AMOUNTS = ("cpu", "memory", "storage")
_OTHERWISE = frozenset({"requests", "limits", "images"})
"""What a pod with `containers` says there."""


def _key(part: ir.Expr) -> str | None:
    """The literal key that is looked up."""
    match part:
        case ir.Index(key=ir.Const(value=str() as key)):
            return key
        case ir.Call(function="@in", args=(ir.Const(value=str() as key), _)):
            return key
        case ir.Call(function="domain", args=(_, ir.Const(value=str() as key))):
            return key
        case ir.Select(operand=operand, name=name) | ir.Has(operand=operand, name=name):
            return name if operand.type.kind is Kind.MAP else None
        case _:
            return None
