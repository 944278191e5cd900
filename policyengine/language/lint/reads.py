"""What expressions call and read, through the lets they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.per_object import PerObject


class Reading(NamedTuple):
    """The functions that are called and the fields of the schema that are read."""

    functions: frozenset[str]
    paths: frozenset[tuple[str, ...]]


class Readings:
    """Of the expressions of one policy."""

    def __init__(self, lets: Iterable[ir.Let]) -> None:
        """`lets`: each after those it names."""
        self._lets: dict[str, Reading] = {}
        for let in lets:
            self._lets[let.name] = self._reading(let.value)
        self.of = PerObject(self._reading)

    def _reading(self, expr: ir.Expr) -> Reading:
        functions: set[str] = set()
        paths: set[tuple[str, ...]] = set()
        for part in walk(expr):
            if isinstance(part, ir.Call):
                functions.add(part.function)
            elif isinstance(part, ir.Field):
                paths.add(part.path)
            elif isinstance(part, ir.LetRef) and part.name in self._lets:
                named = self._lets[part.name]
                functions |= named.functions
                paths |= named.paths
        return Reading(frozenset(functions), frozenset(paths))
