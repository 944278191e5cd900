"""The lets of a policy: what each needs, and the order in which they are lowered and evaluated.

Rules of this file:
1. A let comes after those it needs. So no recursion goes from let to let, however many there are.
2. A let is evaluated where its value is asked for: of `c ? a : b` only one branch. Only below a let that is more than
   `DEEP` levels deep, counted through lets, those it needs are evaluated first, in order.

For example `let a = 1`, `let b = a + a`, `let c = a + b` come as a, b, c; b is 2 levels deep and c is 3.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from policyengine.language import ir
from policyengine.language.ir.ir_walk import aggregated, children, is_cluster_list, walk
from policyengine.language.types import Kind, Shape

DEEP: Final = 100
"""How many levels of expressions are evaluated by recursion, those of lets counted too."""


@dataclass(frozen=True, slots=True)
class About:
    """What holds for an expression, through the lets it names too."""

    depth: int
    """How many levels it has."""
    aggregates: bool
    """Whether it makes one value of a list of the cluster."""
    domains: int
    """How many domains it asks about; 2 stands for any more."""


class Lets:
    """The lets of one policy. What `map` and `optMap` give names to is added while it is lowered."""

    def __init__(self, lets: Mapping[str, ir.Let]) -> None:
        self._values = {name: let.value for name, let in lets.items()}
        self._about: dict[str, About] = {}
        self._needs: dict[str, tuple[str, ...]] = {}
        self._lists: dict[str, bool] = {}
        self.elements: dict[str, ir.Expr] = {}
        """A list of nodes or pods -> what stands for one of its elements."""

    def value(self, name: str) -> ir.Expr | None:
        """The value of a let, None without one."""
        return self._values.get(name)

    def add(self, name: str, value: ir.Expr) -> None:
        """One more let; the same name stands for the same value."""
        self._values[name] = value

    def is_list(self, name: str) -> bool:
        """Whether a let is a list of nodes or pods of the cluster, which only aggregates read."""
        found = self._lists.get(name)
        if found is None:
            found = self._lists[name] = is_cluster_list(self._values[name], self.value)
        return found

    def needs(self, name: str) -> tuple[str, ...]:
        """The lets that the value of a let names."""
        found = self._needs.get(name)
        if found is None:
            found = self._needs[name] = _named(self._values[name])
        return found

    def of_rows(self, name: str, row: Shape) -> list[str]:
        """Those of them that are evaluated in the same frame of rows: its columns, and lists."""
        needs = ((one, self._values[one].shape) for one in self.needs(name))
        return [one for one, shape in needs if shape is row or (shape is Shape.SCALAR and self.is_list(one))]

    def about(self, expr: ir.Expr) -> About:
        """What holds for an expression."""
        needs = _named(expr)
        for needed in needs:
            for name in in_order(needed, self.needs, self._about):
                self._about[name] = self._found(self._values[name], self.needs(name))
        return self._found(expr, needs)

    def is_deep(self, name: str) -> bool:
        """Whether those that a let needs have to be evaluated before it."""
        return self.about(self._values[name]).depth > DEEP

    def _found(self, expr: ir.Expr, needs: tuple[str, ...]) -> About:
        below, parts = [self._about[name] for name in needs], list(walk(expr))
        aggregates = any(one.aggregates for one in below)
        aggregates = aggregates or any(aggregated(part, self.value) is not None for part in parts)
        domains = sum(one.domains for one in below) + sum(map(_is_domain, parts))
        return About(self._depth(expr), aggregates, min(2, domains))

    def _depth(self, expr: ir.Expr) -> int:
        if isinstance(expr, ir.LetRef):
            return 1 + self._about[expr.name].depth
        return 1 + max(map(self._depth, children(expr)), default=0)


def in_order(name: str, needs: Callable[[str], Iterable[str]], known: Container[str]) -> list[str]:
    """A let and those it needs, through others too, which are not `known`; each after those it needs."""
    found: list[str] = []
    met: set[str] = set()
    pending = [(name, False)]
    while pending:
        one, is_ready = pending.pop()
        if is_ready:
            found.append(one)
        elif one not in met and one not in known:
            met.add(one)
            pending.append((one, True))
            pending += [(needed, False) for needed in needs(one)]
    return found


def _named(expr: ir.Expr) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.name for part in walk(expr) if isinstance(part, ir.LetRef)))


def _is_domain(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function == "domain" and expr.type.kind is Kind.LIST
