"""Interval analysis: the bounds of a number, so that a score without `normalize` is known to have some; and whether an
expression may fail to have a value.

For lint what Kubernetes says of its fields is known too. An operation on integers fails where its bounds leave 64 bits:
`pod.priority + 1` never does, `node.free.memory * 2` may.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import cached_property
from itertools import islice

from policyengine.language import ir
from policyengine.language.diagnostics import Related
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.answer_bounds import EVERYTHING, Arguments, Interval, Unbounded, ceil, floor, hull
from policyengine.language.ir.ir_walk import walk
from policyengine.language.types import Kind, Type, content_of
from policyengine.language.values import INT64_MAX, INT64_MIN, display

MOST_SHOWN = 20
"""Steps of a proof."""
_NOT_NEGATIVE = Interval(0, INT64_MAX)
_COUNT = Interval(0, 2**31)
_AMOUNTS: frozenset[tuple[str, ...]] = frozenset(
    {("node", "allocatable"), ("node", "capacity"), ("node", "used"), ("pod", "requests"), ("pod", "limits")}
)
"""Maps of resources that validation keeps from being negative; `node.free` may be."""
_FIELDS: dict[tuple[str, ...], Interval] = {
    ("node", "podCount"): _COUNT,
    ("pod", "attempts"): _COUNT,
    ("pod", "qos"): Interval(0, 2),
    ("pod", "priority"): Interval(-(2**31), 2**31 - 1),
    ("cluster", "nodeCount"): _COUNT,
    ("cluster", "podCount"): _COUNT,
    ("cluster", "pendingCount"): _COUNT,
}
_TOTAL = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "!_", "size", "orValue", "or", "hasValue", "optional.of"}
    | {"optional.none", "ratio", "min", "max", "clamp", "sqrt", "ln", "exp", "pow", "hash", "random", "string"}
    | {"startsWith", "endsWith", "contains", "matches", "lowerAscii", "upperAscii", "trim", "trailingInt", "toInt"}
    | {"toDouble", "toDuration", "toTimestamp", "toQuantity/cpu", "toQuantity/memory", "toQuantity/storage"}
)
"""Functions that have a value whatever they are given."""
_COMPUTED = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "abs", "sum", "avg", "stddev", "floor", "ceil", "round", "int", "double"}
)
"""Functions of numbers that fail on a divisor of 0, and where 64 bits do not hold the result."""
_NUMERIC = frozenset({Kind.INT, Kind.DOUBLE, Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION, Kind.TIMESTAMP})


class Intervals:
    """Bounds of expressions of one policy."""

    def __init__(self, params: Mapping[str, ir.Param], lets: Mapping[str, ir.Let]) -> None:
        """`lets`: each after those it names; there may be more of them later."""
        self._params, self._lets = params, lets
        self._named: dict[str, Interval] = {}
        self._variables: dict[str, Interval] = {}
        """Of the macros around the expression that is looked at."""

    def _of_name(self, name: str) -> Interval:
        if name not in self._named and name in self._lets:
            # In their order, so that no recursion goes from let to let, however many there are.
            for let in self._lets.values():
                if let.name not in self._named:
                    self._named[let.name] = self.of(let.value)
        return self._named[name] if name in self._named else _of_param(self._params[name])

    def of(self, expr: ir.Expr) -> Interval:
        """The bounds of an expression's values, where it has one."""
        return _of_type(expr.type, self.computed(expr))

    def computed(self, expr: ir.Expr) -> Interval:
        """The same before it is known that an int has 64 bits: ends beyond these are an overflow."""
        match expr:
            case ir.Const():
                value = expr.value
                return Interval(value, value) if isinstance(value, int | float) and value == value else EVERYTHING
            case ir.ParamRef() | ir.LetRef():
                return self._of_name(expr.name)
            case ir.Conditional():
                return hull([self.of(expr.then), self.of(expr.otherwise)])
            case ir.Local():
                return self._variables.get(expr.name, EVERYTHING)
            case ir.OptMap():
                return self._with(expr.variable, expr.operand, expr.body)
            case ir.Comprehension(fold=ir.Fold.MAP):
                return self._with(expr.variables[0], expr.source, expr.body)
            case ir.Comprehension(fold=ir.Fold.FILTER):
                return self.of(expr.source)
            case ir.ListExpr() if expr.items:
                return hull(self.of(item) for item, _ in expr.items)
            case ir.Call():
                return self._call(expr)
            case _:
                return EVERYTHING

    def _with(self, variable: str, source: ir.Expr, body: ir.Expr) -> Interval:
        """The bounds of a body whose variable is the content, or each element, of a source."""
        outer = self._variables
        self._variables = {**outer, variable: self.of(source)}
        try:
            return self.of(body)
        finally:
            self._variables = outer

    def _call(self, expr: ir.Call) -> Interval:
        row = FUNCTIONS.get(expr.function)
        bounds = None if row is None else row.bounds
        if isinstance(bounds, Interval):
            return bounds
        if bounds is None or isinstance(bounds, Unbounded):
            return EVERYTHING
        types = tuple(arg.type for arg in expr.args)
        return bounds(Arguments(types, tuple(map(self.of, expr.args)), expr.type))


class Bounds(Intervals):
    """`Intervals` that know the fields too."""

    def __init__(self, params: Mapping[str, ir.Param], lets: Mapping[str, ir.Let]) -> None:
        """`lets`: all of the policy, each after those it names."""
        super().__init__(params, lets)
        self._known_bounds: dict[int, Interval] = {}
        self._known_failures: dict[int, bool] = {}

    def of(self, expr: ir.Expr) -> Interval:
        """The bounds of an expression of the policy; each is computed once, but where a macro's variable is bounded."""
        if self._variables:
            return super().of(expr)
        known = self._known_bounds.get(id(expr))
        if known is None:
            known = self._known_bounds[id(expr)] = super().of(expr)
        return known

    def steps(self, expr: ir.Expr) -> tuple[Related, ...]:
        """How the bounds of an expression come about: the parts that have some, then itself."""
        found: dict[Related, None] = {}
        for part in self._parts(expr):
            kind, bounds = content_of(part.type), self.of(part)
            if (
                kind.kind in _NUMERIC
                and bounds[:2] != EVERYTHING[:2]
                and (part is expr or not isinstance(part, ir.Const))
            ):
                found[Related(part.span, within(bounds, kind))] = None
        return tuple(found)

    def why_total(self, expr: ir.Expr) -> tuple[Related, ...]:
        """Why evaluating an expression, which `may_fail` says is no error, is none."""
        found: dict[Related, None] = {}
        for part in self._parts(expr):
            if isinstance(part, ir.Call) and part.function not in _TOTAL and part.type.kind is not Kind.DOUBLE:
                found[Related(part.span, f"{within(self.of(part), part.type)}, which 64 bits hold")] = None
            elif isinstance(part, ir.Call | ir.Index | ir.Select) or part is expr:
                found[Related(part.span, "has a value whatever it is given")] = None
        return tuple(found)

    def _parts(self, expr: ir.Expr) -> list[ir.Expr]:
        """The parts that come first, each before what it is a part of; no more than are shown."""
        parts = walk(expr, lambda name: self._lets[name].value if name in self._lets else None)
        return [*islice(parts, MOST_SHOWN)][::-1]

    def computed(self, expr: ir.Expr) -> Interval:
        """The bounds of an expression in its grain; of an optional: of its content."""
        match expr:
            case ir.Field(path=path):
                return _FIELDS.get(path) or (_NOT_NEGATIVE if path[:2] in _AMOUNTS else EVERYTHING)
            case ir.Index(operand=ir.Field(path=path)) | ir.Select(operand=ir.Field(path=path)):
                return _NOT_NEGATIVE if path in _AMOUNTS else super().computed(expr)
            case ir.Conditional(condition=condition) if isinstance(condition, ir.Const):
                return self.of(expr.then if condition.value else expr.otherwise)
            case _:
                return super().computed(expr)

    def may_fail(self, expr: ir.Expr) -> bool:
        """Whether evaluating an expression of the policy may be an error."""
        known = self._known_failures.get(id(expr))
        if known is None:
            known = self._known_failures[id(expr)] = any(self._fails(part, self._failing) for part in walk(expr))
        return known

    @cached_property
    def _failing(self) -> frozenset[str]:
        """The lets whose evaluation may be an error."""
        failing: set[str] = set()
        for name, let in self._lets.items():
            if any(self._fails(part, failing) for part in walk(let.value)):
                failing.add(name)
        return frozenset(failing)

    def _fails(self, part: ir.Expr, failing: Set[str]) -> bool:
        """Whether evaluating a part, apart from its own parts, may be an error. `failing`: the lets that may."""
        match part:
            case ir.LetRef():
                return part.name in failing
            case ir.Index():
                return not part.optional
            case ir.Select():
                return not part.optional and part.operand.type.kind is not Kind.OBJECT
            case ir.MapExpr() | ir.Comprehension(fold=ir.Fold.TRANSFORM_MAP):
                return True  # a key may come twice
            case ir.Call():
                return part.function not in _TOTAL and self._leaves_64_bits(part)
            case _:
                return False

    def _leaves_64_bits(self, call: ir.Call) -> bool:
        kinds = {arg.type.kind for arg in call.args}
        of_list = call.args[0].type.kind is Kind.LIST and call.args[0].type.args[0].kind in _NUMERIC
        if call.function not in _COMPUTED or call.type.kind not in _NUMERIC or not (kinds <= _NUMERIC or of_list):
            return True  # it reads a text, joins texts or lists
        if call.type.kind is Kind.DOUBLE and (Kind.DOUBLE in kinds or call.function != "_/_"):
            return False
        if call.function in ("_/_", "_%_") and self.of(call.args[1]).may_be_zero:
            return True
        bounds = self.computed(call)
        within = bounds.low > INT64_MIN and bounds.high < INT64_MAX
        return call.type.kind is not Kind.DOUBLE and (bounds.nan or not within)


def _of_type(type_: Type, bounds: Interval) -> Interval:
    """What of the bounds a type has: of what is no double whole numbers of 64 bits, and no NaN."""
    while type_.kind in (Kind.OPTIONAL, Kind.LIST):
        (type_,) = type_.args
    low, high = bounds.low, bounds.high
    if type_.kind is Kind.DOUBLE:
        return Interval(float(low), float(high), bounds.nan)
    low = min(floor(low), INT64_MAX) if low >= INT64_MIN else -math.inf
    high = max(ceil(high), INT64_MIN) if high <= INT64_MAX else math.inf
    return Interval(low, high)


def _of_param(param: ir.Param) -> Interval:
    numbers = [value for value in param.values or () if isinstance(value, int | float)]
    if not numbers:
        numbers = [end for end in (param.minimum, param.maximum) if isinstance(end, int | float)]
    return Interval(min(numbers), max(numbers)) if numbers else EVERYTHING


def within(bounds: Interval, type_: Type) -> str:
    """The bounds as the step of a proof shows them."""
    low, high = number(bounds.low, type_), number(bounds.high, type_)
    return (f"is {low}" if low == high else f"lies within {low} and {high}") + (", or is NaN" if bounds.nan else "")


def number(value: float, type_: Type) -> str:
    """An end of an interval, in the type's own unit."""
    return display(int(value) if type_.kind is not Kind.DOUBLE and math.isfinite(value) else value, type_)
