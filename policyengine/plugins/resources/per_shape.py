"""What a plugin works out of a pod's spec, kept per `PodShape`, so that equal pods pay once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import PodShape

T = TypeVar("T")

LIMIT = 4096
"""Shapes remembered; beyond it everything is forgotten, which costs only time."""


class PerShape(Generic[T]):
    """A function of the shape that remembers. Shapes are interned and immutable, so identity is the key."""

    __slots__ = ("_compute", "_known")

    def __init__(self, compute: Callable[[PodShape], T]) -> None:
        self._compute = compute
        self._known: dict[PodShape, T] = {}

    def __call__(self, pod: PodInfo) -> T:
        """The value for the pod's shape."""
        shape = pod.shape
        try:
            return self._known[shape]
        except KeyError:
            pass
        if len(self._known) >= LIMIT:
            self._known.clear()
        value = self._known[shape] = self._compute(shape)
        return value
