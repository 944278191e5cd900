"""What an expression reads of the schema, through lets too. Found once an expression, and kept in the scope: the rules
of a policy share their lets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from policyengine.language import ir
from policyengine.language.ir_walk import walk
from policyengine.language.schema import attribute

if TYPE_CHECKING:
    from policyengine.compiler.frame import Scope

Path = tuple[str, ...]
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read."""

    roots: frozenset[str]
    """`pod`, `node`, `podGroup`, …"""
    pod_fields: frozenset[str]
    """`labels`, `requests`, …"""
    changes: frozenset[str]
    """What may change it, in the schema's words: `node.label`, `assignedPod.add`."""
    is_evictable: bool
    """Whether an eviction could change it."""
    asks_domains: bool
    """Whether it asks about a domain of nodes."""


def reading(expr: ir.Expr, scope: Scope) -> Reading:
    """What one expression reads."""
    known = scope.readings.get(id(expr))
    if known is None:
        known = scope.readings[id(expr)] = expr, _read(expr, scope)
    return known[1]


def _read(expr: ir.Expr, scope: Scope) -> Reading:
    paths: set[Path] = set()
    lets: list[Reading] = []
    asks_domains = False
    for part in walk(expr):
        if isinstance(part, ir.Field):
            paths.add(part.path)
        elif isinstance(part, ir.Call):
            asks_domains |= part.function == "domain"
        elif isinstance(part, ir.LetRef):
            value = scope.let_value(part.name)
            lets += [] if value is None else [reading(value, scope)]
    own = Reading(
        frozenset(path[0] for path in paths),
        frozenset(path[1] for path in paths if path[0] == "pod"),
        _NOTHING.union(*(_schema(path)[0] for path in paths)),
        any(_schema(path)[1] for path in paths),
        asks_domains,
    )
    return _together((own, *lets)) if lets else own


def all_read(expressions: Iterable[ir.Expr], scope: Scope) -> Reading:
    """What several expressions read together."""
    return _together([reading(expr, scope) for expr in expressions])


def _together(parts: Iterable[Reading]) -> Reading:
    parts = tuple(parts)
    return Reading(
        _NOTHING.union(*(part.roots for part in parts)),
        _NOTHING.union(*(part.pod_fields for part in parts)),
        _NOTHING.union(*(part.changes for part in parts)),
        any(part.is_evictable for part in parts),
        any(part.asks_domains for part in parts),
    )


@lru_cache(maxsize=1024)
def _schema(path: Path) -> tuple[frozenset[str], bool]:
    """(what may change a path, whether an eviction could)."""
    known = attribute(path)
    return (_NOTHING, False) if known is None else (frozenset(known.changes), known.evictable)
