"""Answers about parts of a policy, each worked out once however many rules ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

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
