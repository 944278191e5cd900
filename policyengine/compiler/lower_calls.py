"""Which kernel a call has for columns, by function and argument types; the rest is worked out by value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce

import numpy as np

from policyengine.compiler import arithmetic, comparison
from policyengine.compiler.arithmetic import Kernel
from policyengine.compiler.column import Array, Column, Fault
from policyengine.compiler.lower_logic import or_optional, or_value
from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.types import QUANTITIES, Kind, Shape, Type

WHOLE = QUANTITIES | {Kind.INT, Kind.DURATION, Kind.TIMESTAMP}
"""Kinds held as int64."""
SCALED = QUANTITIES | {Kind.DURATION}

COMPARISONS = frozenset({*comparison.ORDERINGS, "_==_", "_!=_"})

Chooser = Callable[[tuple[Type, ...]], Kernel | None]


def kernel_of(call: ir.Call) -> Kernel | None:
    """The column kernel of a call, None where it has to be worked out by value."""
    return _kernel(call.function, tuple([arg.type for arg in call.args]))


@lru_cache(maxsize=4096)
def _kernel(function: str, types: tuple[Type, ...]) -> Kernel | None:
    choose = _CHOOSERS.get(function)
    return None if choose is None else choose(types)


def is_dear(expr: ir.Expr) -> bool:
    """Whether a part of the expression itself is more than a few operations on whole columns."""
    return any(
        isinstance(part, ir.Comprehension | ir.OptMap)
        or (isinstance(part, ir.Call) and (kernel_of(part) is None or part.function in arithmetic.TRANSCENDENTAL))
        for part in walk(expr)
        if part.shape is not Shape.SCALAR
    )


def _all(types: tuple[Type, ...], kinds: frozenset[Kind]) -> bool:
    return all(type_.kind in kinds for type_ in types)


_DOUBLE = frozenset({Kind.DOUBLE})


def _whole_or_double(whole: Kernel, double: Kernel) -> Chooser:
    def choose(types: tuple[Type, ...]) -> Kernel | None:
        if _all(types, WHOLE):
            return whole
        return double if _all(types, _DOUBLE) else None

    return choose


def _multiply(types: tuple[Type, ...]) -> Kernel | None:
    left, right = types[0].kind, types[1].kind
    if left in SCALED and right is Kind.DOUBLE:
        return arithmetic.scale
    if left is Kind.DOUBLE and right in SCALED:
        return lambda factor, a: arithmetic.scale(a, factor)
    return _whole_or_double(arithmetic.multiply, arithmetic.double_kernel(np.multiply))(types)


def _divide(types: tuple[Type, ...]) -> Kernel | None:
    left, right = types[0].kind, types[1].kind
    if left in SCALED:
        by = {Kind.DOUBLE: arithmetic.unscale, Kind.INT: arithmetic.divide_to_grain}
        return by.get(right, arithmetic.quantity_quotient)
    return _whole_or_double(arithmetic.divide, arithmetic.double_kernel(np.divide))(types)


def _ordering(function: str) -> Chooser:
    return lambda types: comparison.ordering(function, *types)


def _equal(types: tuple[Type, ...]) -> Kernel | None:
    return comparison.equality(*types) if comparison.has_equality(*types) else None


def _unequal(types: tuple[Type, ...]) -> Kernel | None:
    equal = _equal(types)
    return None if equal is None else lambda a, b: negated(equal(a, b))


def negated(a: Column) -> Column:
    """`!a`."""
    return Column(np.logical_not(a.values), a.faults)


def _folded(whole: Kernel, double: Kernel) -> Chooser:
    def choose(types: tuple[Type, ...]) -> Kernel | None:
        pair = _whole_or_double(whole, double)(types) if len(types) > 1 else None
        return None if pair is None else lambda *columns: reduce(pair, columns)

    return choose


_MIN = _folded(arithmetic.smaller, arithmetic.smaller_double)
_MAX = _folded(arithmetic.larger, arithmetic.larger_double)


def _clamp(types: tuple[Type, ...]) -> Kernel | None:
    low, high = _MAX(types[:2]), _MIN(types[1:])
    if low is None or high is None or types[0].kind not in WHOLE | _DOUBLE:
        return None
    return lambda value, least, most: high(low(value, least), most)


def _always(kernel: Kernel) -> Chooser:
    return lambda types: kernel


def _to_int(function: Callable[[Array], Array]) -> Chooser:
    return lambda types: same if types[0].kind is Kind.INT else arithmetic.round_with(function)


def same(a: Column) -> Column:
    """The operand."""
    return a


def _double(types: tuple[Type, ...]) -> Kernel | None:
    return _AS_DOUBLE.get(types[0].kind)


_AS_DOUBLE: dict[Kind, Kernel] = {
    Kind.DOUBLE: same,
    Kind.INT: arithmetic.to_double,
    Kind.CPU: arithmetic.in_units(1000),
    Kind.MEMORY: arithmetic.to_double,
    Kind.STORAGE: arithmetic.to_double,
}


def _int(types: tuple[Type, ...]) -> Kernel | None:
    return {Kind.INT: same, Kind.DOUBLE: arithmetic.truncated}.get(types[0].kind)


def has_value(optional: Column) -> Column:
    """`o.hasValue()`."""
    present = np.array(True) if optional.present is None else optional.present
    return Column(present, optional.faults)


def value_of(optional: Column) -> Column:
    """`o.value()`: a row fails where nothing is held."""
    if optional.present is None:
        return optional
    absent = np.where(optional.present, np.uint8(0), np.uint8(Fault.ABSENT)).astype(np.uint8)
    return optional.held().with_faults(absent)


def _flat(kernel: Kernel) -> Chooser:
    """A kernel of optionals, for those whose content is no optional itself."""

    def choose(types: tuple[Type, ...]) -> Kernel | None:
        return None if types[0].args[0].kind is Kind.OPTIONAL else kernel

    return choose


_CHOOSERS: dict[str, Chooser] = {
    "_+_": _whole_or_double(arithmetic.add, arithmetic.double_kernel(np.add)),
    "_-_": _whole_or_double(arithmetic.subtract, arithmetic.double_kernel(np.subtract)),
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": lambda types: arithmetic.remainder,
    "-_": _whole_or_double(arithmetic.negate, arithmetic.double_kernel(np.negative)),
    "!_": lambda types: negated,
    **{name: _ordering(name) for name in comparison.ORDERINGS},
    "_==_": _equal,
    "_!=_": _unequal,
    "ratio": _whole_or_double(arithmetic.ratio_of_whole, arithmetic.ratio_of_doubles),
    "clamp": _clamp,
    "min": _MIN,
    "max": _MAX,
    "abs": _whole_or_double(arithmetic.absolute, arithmetic.double_kernel(np.abs)),
    "floor": _to_int(np.floor),
    "ceil": _to_int(np.ceil),
    "round": _to_int(arithmetic.half_away),
    "double": _double,
    "int": _int,
    "hasValue": _flat(has_value),
    "value": _flat(value_of),
    "orValue": _flat(or_value),
    "or": _flat(or_optional),
    **{name: _always(kernel) for name, kernel in arithmetic.TRANSCENDENTAL.items()},
}
