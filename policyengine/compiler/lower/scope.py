"""What names mean while a policy is lowered, and what an expression reads of the schema, through lets too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from policyengine.compiler.columns.frame import Scalar, Watch
from policyengine.language import ir
from policyengine.language.ir.ir_walk import children
from policyengine.language.schema import attribute
from policyengine.language.types import Shape

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


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean while a policy is lowered. `holes` stand for parts whose value comes from outside."""

    lets: Mapping[str, ir.Let] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    """`policy.name` and `policy.hash`."""
    holes: Mapping[int, str] = field(default_factory=dict)
    """id of an expression -> the local that holds its value."""
    watch: Watch | None = None
    """None, as everywhere but in tests of policies, costs nothing."""
    row: Shape = Shape.NODE
    """What a row of the frame is: a node, or a pod of the cluster."""
    scalars: dict[int, tuple[ir.Expr, Scalar]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """id of an expression -> the expression and its closure: what several rules name is lowered once."""
    readings: dict[int, tuple[ir.Expr, Reading]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Likewise what it reads."""

    def with_holes(self, holes: Mapping[int, str]) -> Scope:
        """The same scope, with other holes."""
        return replace(self, holes=holes)

    def of(self, row: Shape) -> Scope:
        """The same scope for frames of nodes or of pods."""
        return self if row is self.row else replace(self, row=row)

    def naming(self, name: str, value: ir.Expr) -> Scope:
        """The same scope with one more let."""
        return replace(self, lets={**self.lets, name: ir.Let(name=name, value=value, span=value.span)})

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let, None without one."""
        let = self.lets.get(name)
        return None if let is None else let.value


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
