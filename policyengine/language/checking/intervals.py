"""Interval analysis: the bounds of a number, so that a score without `normalize` is known to have some."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.bounds import EVERYTHING, Arguments, Interval, Unbounded, hull

Find = Callable[[str], ir.Param | ir.Let | None]


class Intervals:
    """Bounds of expressions of one policy."""

    def __init__(self, params: Iterable[ir.Param], lets: Iterable[ir.Let], find: Find = lambda name: None) -> None:
        """`lets`: each after those it names. `find`: params and lets that came to be later."""
        self._find = find
        self._named = {param.name: _of_param(param) for param in params}
        for let in lets:
            self._named[let.name] = self.of(let.value)

    def _of_name(self, name: str) -> Interval:
        if name not in self._named:
            found = self._find(name)
            self._named[name] = EVERYTHING
            if isinstance(found, ir.Let):
                self._named[name] = self.of(found.value)
            elif found is not None:
                self._named[name] = _of_param(found)
        return self._named[name]

    def of(self, expr: ir.Expr) -> Interval:
        """The bounds of an expression."""
        match expr:
            case ir.Const():
                value = expr.value
                return Interval(value, value) if isinstance(value, int | float) and value == value else EVERYTHING
            case ir.ParamRef() | ir.LetRef():
                return self._of_name(expr.name)
            case ir.Conditional():
                return hull([self.of(expr.then), self.of(expr.otherwise)])
            case ir.OptMap():
                return self.of(expr.body)
            case ir.Comprehension(fold=ir.Fold.MAP):
                return self.of(expr.body)
            case ir.Comprehension(fold=ir.Fold.FILTER):
                return self.of(expr.source)
            case ir.ListExpr() if expr.items:
                return hull(self.of(item) for item, _ in expr.items)
            case ir.Call():
                result = self._call(expr)
                return EVERYTHING if math.isnan(result.low) or math.isnan(result.high) else result
            case _:
                return EVERYTHING

    def _call(self, expr: ir.Call) -> Interval:
        row = FUNCTIONS.get(expr.function)
        bounds = None if row is None else row.bounds
        if isinstance(bounds, Interval):
            return bounds
        if bounds is None or isinstance(bounds, Unbounded):
            return EVERYTHING
        types = tuple(arg.type for arg in expr.args)
        return bounds(Arguments(types, tuple(map(self.of, expr.args)), expr.type))


def _of_param(param: ir.Param) -> Interval:
    numbers = [value for value in param.values or () if isinstance(value, int | float)]
    if not numbers:
        numbers = [end for end in (param.minimum, param.maximum) if isinstance(end, int | float)]
    return Interval(min(numbers), max(numbers)) if numbers else EVERYTHING
