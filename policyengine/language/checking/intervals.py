"""Interval analysis: the bounds of a number, so that a score without `normalize` is known to have some."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from policyengine.language import ir
from policyengine.language.types import CPU, DOUBLE, Kind


class Interval(NamedTuple):
    """Bounds of a value in its grain; infinite where nothing is known. Of an optional: of its content; of a list: of
    each of its elements."""

    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether both ends are."""
        return math.isfinite(self.low) and math.isfinite(self.high)


EVERYTHING = Interval(-math.inf, math.inf)
_POSITIVE = Interval(0.0, math.inf)
_UNIT = Interval(0.0, 1.0)
_KNOWN = {
    "ratio": _UNIT,
    "betaCdf": _UNIT,
    "random": _UNIT,
    "size": _POSITIVE,
    "trailingInt": _POSITIVE,
    "hash": _POSITIVE,
    "sqrt": _POSITIVE,
    "indexOf": Interval(-1.0, math.inf),
    "lastIndexOf": Interval(-1.0, math.inf),
    "getMonth": Interval(0, 11),
    "getDate": Interval(1, 31),
    "getDayOfMonth": Interval(0, 30),
    "getDayOfWeek": Interval(0, 6),
    "getDayOfYear": Interval(0, 365),
    "getMilliseconds": Interval(-999, 999),
}
_ROUNDINGS = 4
_CLOCK = {"getHours": 23, "getMinutes": 59, "getSeconds": 59}


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
        name, args = expr.function, expr.args
        if name in _CLOCK and args[0].type.kind is Kind.TIMESTAMP:
            return Interval(0, _CLOCK[name])
        if name in _KNOWN:
            return _KNOWN[name]
        if args and args[0].type.kind is Kind.LIST:
            of_list = _OF_LISTS.get(name) if len(args) == 1 else None
            return EVERYTHING if of_list is None else of_list(self.of(args[0]))
        rule = _RULES.get(name)
        if rule is None:
            return EVERYTHING
        result = rule(*map(self.of, args))
        if name == "double" and args[0].type == CPU:
            return Interval(result.low / 1000, result.high / 1000)
        # Integers and quantities round, by less than one grain.
        rounds = name in ("_/_", "_*_", "int") and expr.type != DOUBLE
        return Interval(_floor(result.low), _ceil(result.high)) if rounds else result


def hull(parts: Iterable[Interval]) -> Interval:
    """The least interval around all of them."""
    lows, highs = zip(*parts, strict=True)
    return Interval(min(lows), max(highs))


def _of_param(param: ir.Param) -> Interval:
    numbers = [value for value in param.values or () if isinstance(value, int | float)]
    if not numbers:
        numbers = [end for end in (param.minimum, param.maximum) if isinstance(end, int | float)]
    return Interval(min(numbers), max(numbers)) if numbers else EVERYTHING


def _floor(value: float) -> float:
    return math.floor(value) if math.isfinite(value) else value


def _ceil(value: float) -> float:
    return math.ceil(value) if math.isfinite(value) else value


def _product(a: Interval, b: Interval) -> Interval:
    ends = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return Interval(min(ends), max(ends))


def _quotient(a: Interval, b: Interval) -> Interval:
    return EVERYTHING if b.low <= 0 <= b.high else _product(a, Interval(1 / b.high, 1 / b.low))


def _remainder(a: Interval, b: Interval) -> Interval:
    size = max(abs(b.low), abs(b.high))
    return Interval(-size if a.low < 0 else 0.0, size if a.high > 0 else 0.0)


def _clamp(value: Interval, low: Interval, high: Interval) -> Interval:
    return _least(_greatest(value, low), high)


def _least(*parts: Interval) -> Interval:
    return Interval(min(part.low for part in parts), min(part.high for part in parts))


def _greatest(*parts: Interval) -> Interval:
    return Interval(max(part.low for part in parts), max(part.high for part in parts))


def _absolute(a: Interval) -> Interval:
    ends = sorted(map(abs, a))
    return Interval(0.0 if a.low <= 0 <= a.high else ends[0], ends[1])


def _rising(compute: Callable[[float], float], a: Interval) -> Interval:
    return Interval(compute(a.low), compute(a.high))


def _sum(each: Interval) -> Interval:
    """Of any number of elements, of none too."""
    return Interval(-math.inf if each.low < 0 else 0.0, math.inf if each.high > 0 else 0.0)


def _mean(each: Interval) -> Interval:
    """Of nothing it is 0. Sum and quotient are rounded once each: the mean of equal values may be off by that much."""
    low, high = min(each.low, 0.0), max(each.high, 0.0)
    for _ in range(_ROUNDINGS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Interval(low, high)


def _deviation(each: Interval) -> Interval:
    """At most half of what lies between the ends; between, not to lose a rounding."""
    return Interval(0.0, each.high - each.low)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


_OF_LISTS: Mapping[str, Callable[[Interval], Interval]] = {
    "min": lambda each: each,
    "max": lambda each: each,
    "sum": _sum,
    "avg": _mean,
    "stddev": _deviation,
}
_RULES: Mapping[str, Callable[..., Interval]] = {
    "_+_": lambda a, b: Interval(a.low + b.low, a.high + b.high),
    "_-_": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "_*_": _product,
    "_/_": _quotient,
    "_%_": _remainder,
    "-_": lambda a: Interval(-a.high, -a.low),
    "abs": _absolute,
    "clamp": _clamp,
    "min": _least,
    "max": _greatest,
    "orValue": lambda a, b: hull([a, b]),
    "or": lambda a, b: hull([a, b]),
    "optional.of": lambda a: a,
    "double": lambda a: a,
    "int": lambda a: a,
    "floor": lambda a: _rising(_floor, a),
    "ceil": lambda a: _rising(_ceil, a),
    "round": lambda a: Interval(_floor(a.low), _ceil(a.high)),
    "exp": lambda a: _rising(_exp, a),
    "ln": lambda a: _rising(_ln, a),
}
