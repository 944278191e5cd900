"""Interval analysis: the bounds of a number, so that a score without `normalize` is known to have some."""

from __future__ import annotations

import math
from collections.abc import Mapping

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.answer_bounds import EVERYTHING, Arguments, Interval, Unbounded, ceil, floor, hull
from policyengine.language.types import Kind, Type
from policyengine.language.values import INT64_MAX, INT64_MIN


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
