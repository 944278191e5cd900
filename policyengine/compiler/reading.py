"""What an expression reads of the schema, through lets too. Found once an expression, and kept in the scope: the rules
of a policy share their lets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from policyengine.language import ir
from policyengine.language.ir.ir_walk import children
from policyengine.language.schema import attribute

if TYPE_CHECKING:
    from policyengine.compiler.frame import Scope

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What is read. One object says it of all that read the same."""

    paths: frozenset[Path]
    """The fields of the schema."""
    asks_domains: bool
    """Whether it asks about a domain of nodes."""
    roots: frozenset[str]
    """`pod`, `node`, `podGroup`, …"""
    pod_fields: frozenset[str]
    """`labels`, `requests`, …"""
    changes: frozenset[str]
    """What may change it, in the schema's words: `node.label`, `assignedPod.add`."""
    is_evictable: bool
    """Whether an eviction could change it."""


def reading(expr: ir.Expr, scope: Scope) -> Reading:
    """What one expression reads."""
    known = scope.readings.get(id(expr))
    if known is None:
        known = scope.readings[id(expr)] = expr, _read(expr, scope)
    return known[1]


def _read(expr: ir.Expr, scope: Scope) -> Reading:
    paths: set[Path] = set()
    asks_domains = False
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Field):
            paths.add(part.path)
        elif isinstance(part, ir.LetRef):
            value = scope.let_value(part.name)
            if value is not None:
                let = reading(value, scope)
                paths |= let.paths
                asks_domains |= let.asks_domains
        else:
            asks_domains |= isinstance(part, ir.Call) and part.function == "domain"
            pending += children(part)
    return _reading(frozenset(paths), asks_domains)


def all_read(expressions: Iterable[ir.Expr], scope: Scope) -> Reading:
    """What several expressions read together."""
    parts = {reading(expr, scope) for expr in expressions}
    if len(parts) == 1:
        return parts.pop()
    return _reading(frozenset[Path]().union(*(part.paths for part in parts)), any(part.asks_domains for part in parts))


@lru_cache(maxsize=1024)
def _reading(paths: frozenset[Path], asks_domains: bool) -> Reading:
    known = [one for path in paths if (one := attribute(path)) is not None]
    return Reading(
        paths,
        asks_domains,
        roots=frozenset(path[0] for path in paths),
        pod_fields=frozenset(path[1] for path in paths if path[0] == "pod"),
        changes=frozenset(change for one in known for change in one.changes),
        is_evictable=any(one.evictable for one in known),
    )
