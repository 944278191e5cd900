"""Whether conditions can hold together, by constraints on the terms that they compare.

A condition is taken apart through `&&`, `||`, `!`, `?:` and lets until comparisons are left. Each narrows what its
term may be; conditions cannot hold together when on every way through them some term may be nothing at all. The
answer `False` means `not known to be`: steps are bounded, and what is not understood is taken to be possible.

For example `p > 5 && !(p > 3)` leaves p above 5 and at most 3: nothing, so it never holds. A condition may also fail to
have a value, and a double may be NaN, of which `x > 3` and `x <= 3` are both false: `!(x > 3)` leaves NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import ir
from policyengine.language.bounds import MOST_SHOWN, Bounds, number
from policyengine.language.checking.definitions import MIRRORED, NEGATED
from policyengine.language.diagnostics import Related
from policyengine.language.functions.answer_bounds import EVERYTHING, Interval, add, negative
from policyengine.language.ir.ir_walk import LetOf
from policyengine.language.types import Kind, Type, content_of
from policyengine.language.values import display

MOST_STEPS = 30_000
"""Comparisons looked at in one file, each policy of it having its share; after these nothing more is claimed."""
MOST_IN_A_QUESTION = 2_000
_NOT_IN = "!@in"
_INTEGRAL = frozenset({Kind.INT, Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION, Kind.TIMESTAMP})
_NUMERIC = _INTEGRAL | {Kind.DOUBLE}
_DEPTH = 200


class Domain(Struct, frozen=True):
    """What a term may be: numbers between two ends, or any value of a set; without those excluded. `bounds.nan`: or
    NaN."""

    bounds: Interval = Interval(-math.inf, math.inf)
    open_low: bool = False
    open_high: bool = False
    allowed: frozenset[object] | None = None
    excluded: frozenset[object] = frozenset()
    integral: bool = False

    def narrowed(self, operator: str, value: object, nan: bool) -> Domain:
        """The domain where the term compares so with a constant, or is (not) among a set of them. `nan`: NaN does."""
        bounds = self.bounds._replace(nan=self.bounds.nan and nan)
        if operator in ("_==_", "@in", "_!=_", _NOT_IN):
            values = value if isinstance(value, frozenset) else frozenset({value})
            if operator in ("_!=_", _NOT_IN):
                return replace(self, bounds=bounds, excluded=self.excluded | values)
            return replace(self, bounds=bounds, allowed=values if self.allowed is None else self.allowed & values)
        assert isinstance(value, int | float)
        below, strict = operator in ("_<_", "_<=_"), operator in ("_<_", "_>_")
        if self.integral and strict:
            value, strict = math.ceil(value) - 1 if below else math.floor(value) + 1, False
        end = bounds.high if below else bounds.low
        is_nearer = (value < end if below else value > end) or (value == end and strict)
        if below and is_nearer:
            return replace(self, bounds=bounds._replace(high=value), open_high=strict)
        if is_nearer:
            return replace(self, bounds=bounds._replace(low=value), open_low=strict)
        return replace(self, bounds=bounds)

    @property
    def is_empty(self) -> bool:
        """Whether no value is left."""
        if self.bounds.nan:
            return False
        if self.allowed is not None:
            return not any(map(self._holds, self.allowed - self.excluded))
        low, high, _ = self.bounds
        if self.integral:
            while low in self.excluded and low <= high:
                low += 1
            while high in self.excluded and low <= high:
                high -= 1
        point_out = low == high and (self.open_low or self.open_high or low in self.excluded)
        return low > high or point_out

    def shown(self, type_: Type) -> str:
        """What is left, in words: `6 to 9`, `"a" or "b"`, `nothing`."""
        if self.is_empty:
            return "nothing"
        excluded, (low, high, nan) = self.excluded, self.bounds
        if self.allowed is not None:
            text = " or ".join(sorted(_shown(one, type_) for one in self.allowed - excluded if self._holds(one)))
            return f"{text} or NaN" if nan and text else text or "NaN"
        least = f"{'more than ' if self.open_low else ''}{number(low, type_)}"
        most = f"{'less than ' if self.open_high else ''}{number(high, type_)}"
        if math.isinf(low) and math.isinf(high):
            text = "anything"
        elif math.isinf(high):
            text = f"{least} and above"
        elif math.isinf(low):
            text = f"{most} and below"
        else:
            text = least if low == high else f"{least} to {most}"
        text += f" but {', '.join(sorted(_shown(one, type_) for one in excluded))}" if excluded else ""
        return f"{text} or NaN" if nan else text

    def _holds(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        low, high, _ = self.bounds
        return (low < value or (low == value and not self.open_low)) and (
            value < high or (value == high and not self.open_high)
        )


class Comparison(NamedTuple):
    """What a condition says of its term: how that compares with which constant or set of them."""

    term: Hashable
    start: Domain
    """What the term may be where nothing is known of it but its bounds."""
    operator: str
    value: object
    nan: bool = False
    """Whether NaN compares so."""
    of: ir.Expr | None = None
    """The term, where it has a place of its own."""


class Step(NamedTuple):
    """One step of a proof: what a condition leaves of its term."""

    before: Step | None
    """The step before it about the same term."""
    expr: ir.Expr
    holds: bool
    said: Comparison | None
    """None: the condition is a constant."""
    left: Domain


class Literal(NamedTuple):
    """What is taken to be known of a condition: that it is true, or that it is false."""

    expr: ir.Expr
    holds: bool
    or_fails: bool = False
    """Or that it fails to have a value."""


def true(condition: ir.Expr) -> Literal:
    """The condition is true."""
    return Literal(condition, True)


def not_false(condition: ir.Expr) -> Literal:
    """The condition is true, or it fails: so runs a filter whose `when` it is."""
    return Literal(condition, True, or_fails=True)


def false(condition: ir.Expr) -> Literal:
    """The condition is false."""
    return Literal(condition, False)


Branch = Sequence[Sequence[Literal]]
"""Ways of which one holds: each the literals that then hold together."""
Store = dict[Hashable, Step]


class OutOfStepsError(Exception):
    """The question takes too long to answer."""


class Truth:
    """Answers for one policy."""

    def __init__(self, let_of: LetOf, bounds: Bounds, meaning: Callable[[ir.Expr], int], policies: int) -> None:
        """`meaning`: a number that expressions share which mean the same.
        `policies`: how many the file has."""
        self._let_of = let_of
        self._bounds = bounds
        self._left = MOST_STEPS // policies
        self._in_question = 0
        self._meaning = meaning
        self._ends: list[Step] = []
        self._proved: Sequence[Step] = ()

    def impossible(self, *given: Literal) -> bool:
        """Whether what is said of the conditions can never be so of all of them."""
        self._in_question = min(MOST_IN_A_QUESTION, self._left)
        allowed = self._in_question
        self._ends = []
        try:
            proved = self._closed(list(given), (), {}, 0)
            self._proved = self._ends if proved else self._proved
            return proved
        except OutOfStepsError:
            return False
        finally:
            self._left -= allowed - max(self._in_question, 0)

    def implied(self, condition: ir.Expr, *given: Literal) -> bool:
        """Whether the condition is true, and never fails to have a value, wherever that is so which is given."""
        return self.impossible(*given, Literal(condition, False, or_fails=True))

    def outcome(self, condition: ir.Expr) -> bool | None:
        """The one value that a condition always has; None where it has two, or may fail."""
        if self.impossible(not_false(condition)):
            return False
        return True if self.implied(condition) else None

    def proof(self) -> tuple[Related, ...]:
        """The steps of the last question that was answered with yes: at the end of each way nothing is left."""
        found: dict[Related, None] = {}
        for end in self._proved[:MOST_SHOWN]:
            steps: list[Step] = []
            step: Step | None = end
            while step is not None:
                steps.append(step)
                step = step.before
            for one in reversed(steps[:MOST_SHOWN]):
                found.update(dict.fromkeys(self._said(one)))
        return tuple(found)[:MOST_SHOWN]

    def _said(self, step: Step) -> Iterator[Related]:
        said, outcome = step.said, "true" if step.holds else "false"
        if said is None:
            yield Related(step.expr.span, f"is never {outcome}")
        elif said.of is None:
            left = " as well: nothing is left" if step.left.is_empty else ""
            yield Related(step.expr.span, f"is {outcome}{left}")
        else:
            yield from self._bounds.steps(said.of) if step.before is None else ()
            yield Related(step.expr.span, f"is {outcome}: {step.left.shown(content_of(said.of.type))} is left")

    def _closed(self, pending: list[Literal], branches: Sequence[Branch], store: Store, depth: int) -> bool:
        """Whether every way to make the literals hold, with one way of each branch and what the store says, is a
        contradiction."""
        branches = list(branches)
        while pending:
            self._step(depth)
            expr, holds, or_fails = said = pending.pop()
            match expr:
                case ir.Const():
                    if expr.value is not holds:
                        self._ends.append(Step(None, expr, holds, None, Domain()))
                        return True
                case ir.LetRef() if (value := self._let_of(expr.name)) is not None:
                    pending.append(said._replace(expr=value))
                case ir.Call(function="!_"):
                    pending.append(Literal(expr.args[0], not holds, or_fails))
                case ir.Logic() if (expr.op == "&&") == holds:
                    pending += [said._replace(expr=part) for part in expr.operands]
                case ir.Logic():
                    branches.append([[said._replace(expr=part)] for part in expr.operands])
                case ir.Conditional():
                    branches.append(self._ways(expr, said))
                case _ if not (or_fails and self._bounds.may_fail(expr)):
                    if self._contradicts(expr, holds, store):
                        return True
        if not branches:
            return False
        first, *rest = sorted(branches, key=len)
        return all(self._closed(list(way), rest, dict(store), depth + 1) for way in first)

    def _ways(self, expr: ir.Conditional, said: Literal) -> Branch:
        """The ways to make a conditional so."""
        then, otherwise = said._replace(expr=expr.then), said._replace(expr=expr.otherwise)
        ways: list[list[Literal]] = [[true(expr.condition), then], [false(expr.condition), otherwise]]
        return [*ways, []] if said.or_fails and self._bounds.may_fail(expr.condition) else ways

    def _step(self, depth: int) -> None:
        self._in_question -= 1
        if self._in_question <= 0 or depth > _DEPTH:
            raise OutOfStepsError

    def _contradicts(self, expr: ir.Expr, holds: bool, store: Store) -> bool:
        """Adds a condition that cannot be taken apart to the store; True where nothing is left of its term."""
        said = self._comparison(expr, holds)
        if said is None:
            return False
        before = store.get(said.term)
        left = (said.start if before is None else before.left).narrowed(said.operator, said.value, said.nan)
        step = store[said.term] = Step(before, expr, holds, said, left)
        if left.is_empty:
            self._ends.append(step)
        return left.is_empty

    def _comparison(self, expr: ir.Expr, holds: bool) -> Comparison | None:
        """What a condition that cannot be taken apart says; None where that is nothing."""
        if isinstance(expr, ir.Call) and expr.function in NEGATED:
            function = expr.function if holds else NEGATED[expr.function]
            said = self._compares(function, expr.args[0], expr.args[1])
            # Of NaN all comparisons are false but `!=`.
            return said and said._replace(nan=(expr.function == "_!=_") == holds)
        if isinstance(expr, ir.Call) and expr.function == "@in":
            values = _constants(expr.args[1])
            if values is not None:
                term = expr.args[0]
                start = self._domain(term, content_of(term.type).kind in _NUMERIC)
                return Comparison(self._key(term), start, "@in" if holds else _NOT_IN, values, not holds, term)
        return Comparison(("holds", self._key(expr)), Domain(), "_==_", holds)

    def _compares(self, function: str, left: ir.Expr, right: ir.Expr) -> Comparison | None:
        if isinstance(left, ir.Const) and not isinstance(right, ir.Const):
            function, left, right = MIRRORED[function], right, left
        numeric = content_of(left.type).kind in _NUMERIC and left.type.kind is not Kind.OPTIONAL
        if isinstance(right, ir.Const) and _is_plain(right.value):
            if not numeric and function not in ("_==_", "_!=_"):
                return Comparison(("ordered", self._key(left), function, right.value), Domain(), "_==_", True)
            return Comparison(self._key(left), self._domain(left, numeric), function, right.value, of=left)
        return self._between(function, left, right, numeric)

    def _between(self, function: str, left: ir.Expr, right: ir.Expr, numeric: bool) -> Comparison | None:
        """Two terms: their difference is a term of its own; where they are no numbers, whether they are equal."""
        first, second = self._key(left), self._key(right)
        if first > second:
            function, left, right, first, second = MIRRORED[function], right, left, second, first
        if numeric:
            # Equal infinities have no difference, and stand in intervals that leave it open.
            low, high, _ = add(a := self._bounds.of(left), negative(b := self._bounds.of(right)))
            ends = EVERYTHING if math.isnan(low) or math.isnan(high) else Interval(low, high)
            start = Domain(ends._replace(nan=a.nan or b.nan), integral=left.type.kind in _INTEGRAL)
            start = start.narrowed("_==_", 0, nan=True) if first == second else start
            return Comparison(("difference", first, second), start, function, 0)
        if function not in ("_==_", "_!=_"):
            return None
        return Comparison(("equal", first, second), Domain(), "_==_", function == "_==_")

    def _domain(self, term: ir.Expr, numeric: bool) -> Domain:
        if not numeric:
            return Domain()
        return Domain(self._bounds.of(term), integral=term.type.kind in _INTEGRAL)

    def _key(self, expr: ir.Expr) -> int:
        """The key of an expression; a let stands for what it names where that is a name again."""
        seen = 0
        while isinstance(expr, ir.LetRef) and isinstance(value := self._let_of(expr.name), ir.LetRef) and seen < 50:
            expr, seen = value, seen + 1
        return self._meaning(expr)


def _shown(value: object, type_: Type) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else display(value, type_)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and value == value)


def _constants(expr: ir.Expr) -> frozenset[object] | None:
    """The values of a list of constants; None for any other."""
    if not isinstance(expr, ir.ListExpr) or not expr.items:
        return None
    values = [item.value for item, optional in expr.items if isinstance(item, ir.Const) and not optional]
    return frozenset(values) if len(values) == len(expr.items) and all(map(_is_plain, values)) else None
