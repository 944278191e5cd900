"""Guards: what a condition establishes about maps and lists, so that a lookup behind it cannot fail."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol

from policyengine.language import ir
from policyengine.language.ir.ir_walk import key
from policyengine.language.types import STRING, Kind

Fact = tuple[str, Hashable, Hashable]
"""`("key", map, key)`: the map has the key. `("size", list, n)`: the list has at least n items."""
Facts = frozenset[Fact]
MOST_FACTS = 2000
"""Guards beyond these are not remembered: lets can add theirs up as often as there are lets."""
_NOTHING: Facts = frozenset()
_MOST_ITEMS = 64
"""A list known to be longer is not remembered as longer."""
_MIRRORED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}
_NEGATED = {"_<_": "_>=_", "_<=_": "_>_", "_>_": "_<=_", "_>=_": "_<_", "_==_": "_!=_", "_!=_": "_==_"}


class Known(Protocol):
    """What is known of lets."""

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let by name; None if there is none."""

    def let_facts(self, name: str, truth: bool) -> Facts:
        """What holds wherever the let is `truth`; worked out once, when the let is checked."""


def established(expr: ir.Expr, truth: bool, known: Known) -> Facts:
    """What holds wherever the bool expression is `truth`."""
    match expr:
        case ir.Logic():
            parts = [established(part, truth, known) for part in expr.operands]
            together = (expr.op == "&&") == truth
            return _NOTHING.union(*parts) if together else parts[0].intersection(*parts)
        case ir.Conditional():
            return _conditional(expr, truth, known)
        case ir.LetRef():
            return known.let_facts(expr.name, truth)
        case ir.Has():
            return frozenset({key_fact(expr.operand, _name(expr))}) if truth else _NOTHING
        case ir.Call(function="!_"):
            return established(expr.args[0], not truth, known)
        case ir.Call():
            return frozenset(_of_call(expr, truth, known))
        case _:
            return _NOTHING


def _conditional(expr: ir.Conditional, truth: bool, known: Known) -> Facts:
    outcomes = []
    for branch, taken in ((expr.then, True), (expr.otherwise, False)):
        if not (isinstance(branch, ir.Const) and branch.value is not truth):
            outcomes.append(established(expr.condition, taken, known) | established(branch, truth, known))
    return outcomes[0].intersection(*outcomes) if outcomes else _NOTHING


def _of_call(call: ir.Call, truth: bool, known: Known) -> Iterator[Fact]:
    if call.function == "@in" and truth and call.args[1].type.kind is Kind.MAP:
        yield key_fact(call.args[1], call.args[0])
    elif call.function == "hasValue" and truth:
        yield from _present(call.args[0], known)
    elif call.function in _MIRRORED:
        function = call.function if truth else _NEGATED[call.function]
        left, right = call.args
        if isinstance(right, ir.Const):
            yield from _of_comparison(function, left, right, known)
        elif isinstance(left, ir.Const):
            yield from _of_comparison(_MIRRORED[function], right, left, known)


def _of_comparison(function: str, left: ir.Expr, right: ir.Const, known: Known) -> Iterator[Fact]:
    """`size(l) > 2`, and `m[?k].orValue("") != ""`: a value that is not the default was there."""
    left = resolved(left, known)
    if not isinstance(left, ir.Call):
        return
    if left.function == "size" and isinstance(right.value, int):
        least = {"_>_": right.value + 1, "_>=_": right.value, "_==_": right.value}.get(function, 0)
        if function == "_!=_" and right.value == 0:
            least = 1
        yield from (("size", key(left.args[0]), count) for count in range(1, min(least, _MOST_ITEMS) + 1))
    elif left.function == "orValue" and isinstance(left.args[1], ir.Const):
        same = left.args[1].value == right.value
        if (function == "_!=_" and same) or (function == "_==_" and not same):
            yield from _present(left.args[0], known)


def _present(optional: ir.Expr, known: Known) -> Iterator[Fact]:
    """What an optional's content says about the lookups that made it."""
    optional = resolved(optional, known)
    while isinstance(optional, ir.Index | ir.Select) and optional.optional:
        yield key_fact(optional.operand, optional.key if isinstance(optional, ir.Index) else _name(optional))
        optional = resolved(optional.operand, known)


def resolved(expr: ir.Expr, known: Known) -> ir.Expr:
    """The expression, or the value of the let it names."""
    value = known.let_value(expr.name) if isinstance(expr, ir.LetRef) else None
    return value if value is not None else expr


def key_fact(operand: ir.Expr, name: ir.Expr) -> Fact:
    """That the map or thing has the key or field."""
    return ("key", key(operand), key(name))


def size_fact(operand: ir.Expr, least: int) -> Fact:
    """That the list has at least so many items."""
    return ("size", key(operand), least)


def _name(expr: ir.Has | ir.Select) -> ir.Const:
    return field_name(expr.name, expr)


def field_name(name: str, place: ir.Expr) -> ir.Const:
    """A field's name as the key it is."""
    return ir.Const(type=STRING, span=place.span, value=name)
