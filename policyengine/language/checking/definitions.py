"""What names mean once they are resolved, and what conditions guard.

A let of a library is called `safe.x` here, one of an overlay `tenant.x`, whatever they are called where they are
used. Lets come in the order in which they need each other.

A condition establishes facts about maps and lists, so that a lookup behind it cannot fail: behind
`"x" in pod.labels && pod.images.size() > 1` stand `("key", pod.labels, "x")` and `("size", pod.images, 1)`, `2`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.ir.ir_walk import is_error, key, respanned, walk
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, STRING, Kind

MOST_CALLS = 1000
"""How many calls of functions a policy may make in all, those in functions counted wherever they are called."""
MOST_CALLED = 40_000
"""How many parts the bodies of all functions so called may have together: each is checked anew for its arguments."""
Fact = tuple[str, Hashable, Hashable]
"""`("key", map, key)`: the map has the key. `("size", list, n)`: the list has at least n items."""
Facts = frozenset[Fact]
MOST_FACTS = 2000
"""Guards beyond these are not remembered: lets can add theirs up as often as there are lets."""
_NOTHING: Facts = frozenset()
_MOST_ITEMS = 64
"""A list known to be longer is not remembered as longer."""
MIRRORED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}
"""Comparison -> the same with its sides exchanged."""
NEGATED = {"_<_": "_>=_", "_<=_": "_>_", "_>_": "_<=_", "_>=_": "_<_", "_==_": "_!=_", "_!=_": "_==_"}
"""Comparison -> what holds where it does not."""


class Definitions:
    """The params and lets of one policy or library with all it imports, by their full names."""

    def __init__(self, owner: str, file: str) -> None:
        """`owner`: what sets the names given here apart from those given by others; '' for a policy."""
        self.params: dict[str, ir.Param] = {}
        self.lets: dict[str, ir.Let] = {}
        self.calls = 0
        """How many calls of functions were checked."""
        self.called = 0
        """How many parts their bodies have."""
        self.results: dict[Hashable, ir.Expr] = {}
        """What a call of a function came to, by the function and its arguments."""
        self._owner, self._file = owner, file
        self._places: dict[str, Span] = {}
        """Let that is brought in -> the first import that brings it."""
        self._reads: dict[str, frozenset[tuple[str, ...]]] = {}
        self._facts: dict[tuple[str, bool], Facts] = {}
        self._unnamed: dict[Hashable, str] = {}

    def take_over(self, other: Definitions, place: Span) -> None:
        """Everything another one defines is defined here too. `place`: the import."""
        self.params |= other.params
        for name, let in other.lets.items():
            self._places.setdefault(name, place)
            self.lets.setdefault(name, let)
        self._reads |= other._reads
        self._facts |= other._facts

    def placed(self, let: ir.Let) -> ir.Let:
        """A let as this file tells of it: one of another file stands where it is imported."""
        place = self._places.get(let.name)
        if place is None:
            return let
        if let.file == self._file:
            return replace(let, file="")
        return replace(let, value=respanned(let.value, place))

    def define(self, let: ir.Let) -> None:
        """A let, after those it names."""
        self.lets[let.name] = let
        self._reads[let.name] = self.reads(let.value)
        for truth in (True, False) if let.value.type == BOOL else ():
            facts = self.established(let.value, truth)
            self._facts[let.name, truth] = facts if len(facts) <= MOST_FACTS else _NOTHING

    def unnamed(self, value: ir.Expr, label: str) -> ir.LetRef:
        """A let that nobody wrote, so that a value used in several places is worked out once.

        Its name holds what no written name can, and it stands nowhere.
        """
        meaning = key(value)
        name = self._unnamed.get(meaning)
        if name is None:
            name = self._unnamed[meaning] = f"{self._owner}{label}#{len(self.lets)}"
            self.define(ir.Let(name=name, value=value, span=Span(0, 0), file=self._file if self._owner else ""))
        return ir.LetRef(type=value.type, span=value.span, shape=value.shape, reach=value.reach, name=name)

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let; None if there is none."""
        let = self.lets.get(name)
        return let.value if let is not None else None

    def reads(self, expr: ir.Expr) -> frozenset[tuple[str, ...]]:
        """The paths an expression reads, through the lets it names too."""
        own, named = set(), set()
        for part in walk(expr):
            if isinstance(part, ir.Field):
                own.add(part.path)
            elif isinstance(part, ir.LetRef):
                named.add(part.name)
        return frozenset(own).union(*(self._reads.get(name, frozenset()) for name in named))

    def established(self, expr: ir.Expr, truth: bool) -> Facts:
        """What holds wherever the bool expression is `truth`."""
        match expr:
            case ir.Logic():
                parts = [self.established(part, truth) for part in expr.operands]
                together = (expr.op == "&&") == truth
                return _NOTHING.union(*parts) if together else parts[0].intersection(*parts)
            case ir.Conditional():
                outcomes = [
                    self.established(expr.condition, taken) | self.established(branch, truth)
                    for branch, taken in ((expr.then, True), (expr.otherwise, False))
                    if not (isinstance(branch, ir.Const) and branch.value is not truth)
                ]
                return outcomes[0].intersection(*outcomes) if outcomes else _NOTHING
            case ir.LetRef():
                return self._facts.get((expr.name, truth), _NOTHING)
            case ir.Has():
                return frozenset({key_fact(expr.operand, field_name(expr.name, expr))}) if truth else _NOTHING
            case ir.Call(function="!_"):
                return self.established(expr.args[0], not truth)
            case ir.Call():
                return frozenset(self._of_call(expr, truth))
            case _:
                return _NOTHING

    def _of_call(self, call: ir.Call, truth: bool) -> Iterator[Fact]:
        if call.function == "@in" and truth and call.args[1].type.kind is Kind.MAP:
            yield key_fact(call.args[1], call.args[0])
        elif call.function == "hasValue" and truth:
            yield from self._present(call.args[0])
        elif call.function in MIRRORED:
            function = call.function if truth else NEGATED[call.function]
            left, right = call.args
            if isinstance(right, ir.Const):
                yield from self._of_comparison(function, left, right)
            elif isinstance(left, ir.Const):
                yield from self._of_comparison(MIRRORED[function], right, left)

    def _of_comparison(self, function: str, left: ir.Expr, right: ir.Const) -> Iterator[Fact]:
        """`size(l) > 2`, and `m[?k].orValue("") != ""`: a value that is not the default was there."""
        left = self._resolved(left)
        if not isinstance(left, ir.Call):
            return
        if left.function == "size" and isinstance(right.value, int):
            least = {"_>_": right.value + 1, "_>=_": right.value, "_==_": right.value}.get(function, 0)
            if function == "_!=_" and right.value == 0:
                least = 1
            yield from (size_fact(left.args[0], count) for count in range(1, min(least, _MOST_ITEMS) + 1))
        elif left.function == "orValue" and isinstance(left.args[1], ir.Const):
            same = left.args[1].value == right.value
            if (function == "_!=_" and same) or (function == "_==_" and not same):
                yield from self._present(left.args[0])

    def _present(self, optional: ir.Expr) -> Iterator[Fact]:
        """What an optional's content says about the lookups that made it."""
        optional = self._resolved(optional)
        while isinstance(optional, ir.Index | ir.Select) and optional.optional:
            name = optional.key if isinstance(optional, ir.Index) else field_name(optional.name, optional)
            yield key_fact(optional.operand, name)
            optional = self._resolved(optional.operand)

    def _resolved(self, expr: ir.Expr) -> ir.Expr:
        """The expression, or the value of the let it names."""
        return (self.let_value(expr.name) or expr) if isinstance(expr, ir.LetRef) else expr


def key_fact(operand: ir.Expr, name: ir.Expr) -> Fact:
    """That the map or thing has the key or field."""
    return ("key", key(operand), key(name))


def size_fact(operand: ir.Expr, least: int) -> Fact:
    """That the list has at least so many items."""
    return ("size", key(operand), least)


def field_name(name: str, place: ir.Expr) -> ir.Const:
    """A field's name as the key it is."""
    return ir.Const(type=STRING, span=place.span, value=name)


def reached(lets: Iterable[ir.Let], expressions: Iterable[ir.Expr]) -> list[ir.Let]:
    """The lets that somebody wrote in the policy or on it, and those that these or the expressions name."""
    ordered = [let for let in lets if not is_error(let.value)]
    wanted = set().union(*map(named, expressions))
    kept: list[ir.Let] = []
    for let in reversed(ordered):
        written_here = "." not in let.name and let.span.end
        if written_here or let.name in wanted:
            wanted |= named(let.value)
            kept.append(let)
    return kept[::-1]


def named(expr: ir.Expr) -> set[str]:
    """The lets that an expression names."""
    return {part.name for part in walk(expr) if isinstance(part, ir.LetRef)}
