"""What rules share about expressions: which of them mean the same, and what they call and read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from policyengine.language import ir
from policyengine.language.ir.ir_walk import key, walk


class Meanings:
    """Of one policy. Expressions have the same number that mean the same, wherever they stand (`ir_walk.key`)."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.of = PerObject(self._number)

    def _number(self, expr: ir.Expr) -> int:
        return self._numbers.setdefault(key(expr, self.of), len(self._numbers))


# --- answers that are kept --------------------------------------------------------------------------------


_K = TypeVar("_K")
_V = TypeVar("_V")


class PerObject(Generic[_K, _V]):
    """A function that remembers, for each object and not for each value: equal expressions stand in different places,
    and to compare or hash a whole expression takes longer than most questions about it."""

    def __init__(self, compute: Callable[[_K], _V]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[_K, _V]] = {}

    def __call__(self, one: _K) -> _V:
        """What `compute` makes of it, or made of it before."""
        known = self._known.get(id(one))
        if known is None:
            # The object is kept beside its answer, so that its id stays its own.
            known = self._known[id(one)] = one, self._compute(one)
        return known[1]


# --- what expressions read --------------------------------------------------------------------------------


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
