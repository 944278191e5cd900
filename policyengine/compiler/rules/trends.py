"""Which way a condition goes as nodes fill up: whether a pod that it refuses may pass it once others were placed.

As pods are placed, and nothing else happens, `node.used` and `node.podCount` rise and `node.free` falls. What is not
understood goes any way.

Rules:
1. A number rises if it never falls, and falls if it never rises. Where it has no value it gets none by this.
2. A condition falls if it never becomes true that was not (false, or without a value). It rises if it never becomes
   false that was not.
3. A filter gets no truer where its conditions fall or stay and its `when` stays: a pod that it refuses waits for what
   frees room, not for what takes it.

For example `(node.used.cpu + pod.requests.cpu) / node.allocatable.cpu` rises, so that `… <= 0.9` falls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from policyengine.compiler.lower.lets import DEEP
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.requeue_events import PLACING, changes_of, element_of
from policyengine.language import ir
from policyengine.language.bounds import Bounds
from policyengine.language.functions.answer_bounds import EVERYTHING, Arguments, Interval, quotient
from policyengine.language.ir.ir_walk import children
from policyengine.language.types import Kind
from policyengine.language.values import INT64_MAX, INT64_MIN


class Trend(IntEnum):
    """Which way a value goes."""

    FALLS = -1
    STAYS = 0
    RISES = 1


_INTEGRAL: Final = frozenset({Kind.INT, Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION, Kind.TIMESTAMP})
_NUMERIC: Final = _INTEGRAL | {Kind.DOUBLE}
_LIKE_EACH: Final = frozenset({"_+_", "min", "max", "clamp"})
"""Functions of numbers that never fall where an argument rises."""
_LIKE_FIRST: Final = frozenset({"floor", "ceil", "round", "int", "double"})
_ORDERINGS: Final = {"_<_": -1, "_<=_": -1, "_>_": 1, "_>=_": 1}
"""How a comparison goes with its first argument; with its second it goes the other way."""


class Trends(Bounds):
    """The trends of a policy's expressions, and their bounds with the params as they are."""

    def __init__(self, scope: Scope) -> None:
        super().__init__({}, {})
        self._scope = scope
        self._of_lets: dict[str, Trend | None] = {}

    def gets_truer(self, rule: ir.Filter) -> bool:
        """Whether a pod that the filter refuses may pass it once others were placed; True if that is not known."""
        conditions = [require.condition for require in rule.requires]
        whole = conditions if rule.when is None else [rule.when, *conditions]
        if any(self._scope.lets.about(expr).depth > DEEP for expr in whole):
            return True
        if not all(_is_false(require.on_error) for require in rule.requires):
            return True  # what ceases to have a value may pass
        stays = rule.when is None or self.trend(rule.when) is Trend.STAYS
        return not (stays and all(self.trend(one) in (Trend.STAYS, Trend.FALLS) for one in conditions))

    def trend(self, expr: ir.Expr) -> Trend | None:
        """Which way an expression goes; None if any."""
        match expr:
            case ir.Field(path=("node", "used", _) | ("node", "podCount")):
                return Trend.RISES
            case ir.Field(path=("node", "free", _)):
                return Trend.FALLS
            case ir.Field():
                return None if PLACING in changes_of(expr.path) else Trend.STAYS
            case ir.Select() if (owner := element_of(expr.operand.type)) is not None:
                return None if PLACING in changes_of((owner, expr.name)) else self._of_parts(expr)
            case ir.LetRef():
                return self._of_let(expr.name)
            case ir.Logic():
                return _together(map(self.trend, expr.operands))
            case ir.Conditional() if self.trend(expr.condition) is Trend.STAYS:
                return _together((self.trend(expr.then), self.trend(expr.otherwise)))
            case ir.Call():
                return self._of_call(expr)
        return self._of_parts(expr)

    def _of_parts(self, expr: ir.Expr) -> Trend | None:
        """Of what is made of its parts in a way that is not looked into."""
        return Trend.STAYS if all(self.trend(part) is Trend.STAYS for part in children(expr)) else None

    def _of_let(self, name: str) -> Trend | None:
        if name not in self._of_lets:
            value = self._scope.lets.value(name)
            self._of_lets[name] = None if value is None else self.trend(value)
        return self._of_lets[name]

    def _of_call(self, call: ir.Call) -> Trend | None:
        if call.function in ("domain", "history"):
            return None
        if call.function == "orValue":
            return self._of_entry(call)
        trends = list(map(self.trend, call.args))
        if call.function == "!_":
            return _times(trends[0], -1)
        if all(trend is Trend.STAYS for trend in trends):
            return Trend.STAYS
        if not all(arg.type.kind in _NUMERIC for arg in call.args):
            return None
        sign = _ORDERINGS.get(call.function)
        if sign is not None:
            return _together((_times(trends[0], sign), _times(trends[1], -sign)))
        return self._checked(call, self._of_numbers(call, trends))

    def _of_entry(self, call: ir.Call) -> Trend | None:
        """`node.free[?"vendor/x"].orValue(0)`: absent until the node offers some, or a pod there asks for it."""
        entry, otherwise = call.args
        match entry:
            case ir.Index(operand=ir.Field(path=("node", ("used" | "free") as amounts)), optional=True):
                if not self.trend(entry.key) is self.trend(otherwise) is Trend.STAYS:
                    return None
                low, high, _ = self.of(otherwise)
                if amounts == "used":
                    return Trend.RISES if high <= 0 else None
                return Trend.FALLS if low >= 0 else None
        return self._of_parts(call)

    def _of_numbers(self, call: ir.Call, trends: Sequence[Trend | None]) -> Trend | None:
        first, *others = trends
        if call.function in _LIKE_EACH:
            return _together(trends)
        if call.function == "_-_":
            return _together((first, _times(others[0], -1)))
        if call.function == "-_":
            return _times(first, -1)
        if call.function in _LIKE_FIRST:
            return first
        if call.function == "_*_" and first is Trend.STAYS:
            return _times(others[0], self._sign(call.args[0]))
        if call.function in ("_*_", "_/_", "ratio") and others[0] is Trend.STAYS:
            return _times(first, self._sign(call.args[1]))
        return None

    def _checked(self, call: ir.Call, trend: Trend | None) -> Trend | None:
        """None for a number that may come to have a value: it may be NaN, or leaves 64 bits at the end it goes away
        from."""
        bounds = self.computed(call)
        if trend is None or bounds.nan:
            return None
        leaves = bounds.low < INT64_MIN if trend is Trend.RISES else bounds.high > INT64_MAX
        return None if leaves and call.type.kind is not Kind.DOUBLE else trend

    def _sign(self, expr: ir.Expr) -> int | None:
        low, high, nan = self.of(expr)
        return None if nan else 1 if low >= 0 else -1 if high <= 0 else None

    def _of_name(self, name: str) -> Interval:
        value = self._scope.lets.value(name)
        if value is not None:
            if name not in self._named:
                self._named[name] = self.of(value)
            return self._named[name]
        param = self._scope.params.get(name)
        return Interval(param, param) if isinstance(param, int | float) and param == param else EVERYTHING

    def of(self, expr: ir.Expr) -> Interval:
        """As of `Bounds`; what is no double has 64 bits."""
        low, high, nan = super().of(expr)
        if expr.type.kind in _INTEGRAL:
            return Interval(max(low, INT64_MIN), min(high, INT64_MAX))
        return Interval(low, high, nan)

    def computed(self, expr: ir.Expr) -> Interval:
        """As of `Bounds`; a quantity over another has no value where the divisor is 0, and is never NaN."""
        if isinstance(expr, ir.Call) and expr.function == "_/_" and expr.args[1].type.kind in _INTEGRAL:
            dividend, divisor = map(self.of, expr.args)
            if divisor.low == 0 < divisor.high:
                types = tuple(arg.type for arg in expr.args)
                return quotient(Arguments(types, (dividend, divisor._replace(low=1)), expr.type))
        return super().computed(expr)


def _together(trends: Iterable[Trend | None]) -> Trend | None:
    """Of what goes with each of its parts."""
    found = set(trends) - {Trend.STAYS}
    return Trend.STAYS if not found else found.pop() if len(found) == 1 else None


def _times(trend: Trend | None, sign: int | None) -> Trend | None:
    return None if trend is None or sign is None else Trend(trend * sign)


def _is_false(expr: ir.Expr | None) -> bool:
    return expr is None or (isinstance(expr, ir.Const) and expr.value is False)
