"""Which kernel a call has for columns, by function and argument types; the rest is worked out by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

import numpy as np

from policyengine.compiler.columns import arithmetic_kernels, comparison_kernels
from policyengine.compiler.columns.arithmetic_kernels import TRANSCENDENTAL, Kernel
from policyengine.compiler.columns.column import Array, Column, Fault
from policyengine.compiler.columns.logic_kernels import or_optional, or_value
from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.types import QUANTITIES, Kind, Shape, Type
from policyengine.language.values import EvaluationError

WHOLE = QUANTITIES | {Kind.INT, Kind.DURATION, Kind.TIMESTAMP}
"""Kinds held as int64."""
SCALED = QUANTITIES | {Kind.DURATION}

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
        or (isinstance(part, ir.Call) and (kernel_of(part) is None or part.function in TRANSCENDENTAL))
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
        return arithmetic_kernels.scale
    if left is Kind.DOUBLE and right in SCALED:
        return lambda factor, a: arithmetic_kernels.scale(a, factor)
    return _whole_or_double(arithmetic_kernels.multiply, arithmetic_kernels.double_kernel(np.multiply))(types)


def _divide(types: tuple[Type, ...]) -> Kernel | None:
    left, right = types[0].kind, types[1].kind
    if left in SCALED:
        by = {Kind.DOUBLE: arithmetic_kernels.unscale, Kind.INT: arithmetic_kernels.divide_to_grain}
        return by.get(right, arithmetic_kernels.quantity_quotient)
    return _whole_or_double(arithmetic_kernels.divide, arithmetic_kernels.double_kernel(np.divide))(types)


def _ordering(function: str) -> Chooser:
    return lambda types: comparison_kernels.ordering(function, *types)


def _equal(types: tuple[Type, ...]) -> Kernel | None:
    return comparison_kernels.equality(*types) if comparison_kernels.has_equality(*types) else None


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


_MIN = _folded(arithmetic_kernels.smaller, arithmetic_kernels.smaller_double)
_MAX = _folded(arithmetic_kernels.larger, arithmetic_kernels.larger_double)


def _clamp(types: tuple[Type, ...]) -> Kernel | None:
    low, high = _MAX(types[:2]), _MIN(types[1:])
    if low is None or high is None or types[0].kind not in WHOLE | _DOUBLE:
        return None
    return lambda value, least, most: high(low(value, least), most)


def _always(kernel: Kernel) -> Chooser:
    return lambda types: kernel


def _to_int(function: Callable[[Array], Array]) -> Chooser:
    return lambda types: same if types[0].kind is Kind.INT else arithmetic_kernels.round_with(function)


def same(a: Column) -> Column:
    """The operand."""
    return a


def _double(types: tuple[Type, ...]) -> Kernel | None:
    return _AS_DOUBLE.get(types[0].kind)


_AS_DOUBLE: dict[Kind, Kernel] = {
    Kind.DOUBLE: same,
    Kind.INT: arithmetic_kernels.to_double,
    Kind.CPU: arithmetic_kernels.in_units(1000),
    Kind.MEMORY: arithmetic_kernels.to_double,
    Kind.STORAGE: arithmetic_kernels.to_double,
}


def _int(types: tuple[Type, ...]) -> Kernel | None:
    return {Kind.INT: same, Kind.DOUBLE: arithmetic_kernels.truncated}.get(types[0].kind)


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
    "_+_": _whole_or_double(arithmetic_kernels.add, arithmetic_kernels.double_kernel(np.add)),
    "_-_": _whole_or_double(arithmetic_kernels.subtract, arithmetic_kernels.double_kernel(np.subtract)),
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": lambda types: arithmetic_kernels.remainder,
    "-_": _whole_or_double(arithmetic_kernels.negate, arithmetic_kernels.double_kernel(np.negative)),
    "!_": lambda types: negated,
    **{name: _ordering(name) for name in comparison_kernels.ORDERINGS},
    "_==_": _equal,
    "_!=_": _unequal,
    "ratio": _whole_or_double(arithmetic_kernels.ratio_of_whole, arithmetic_kernels.ratio_of_doubles),
    "clamp": _clamp,
    "min": _MIN,
    "max": _MAX,
    "abs": _whole_or_double(arithmetic_kernels.absolute, arithmetic_kernels.double_kernel(np.abs)),
    "floor": _to_int(np.floor),
    "ceil": _to_int(np.ceil),
    "round": _to_int(arithmetic_kernels.half_away),
    "double": _double,
    "int": _int,
    "hasValue": _flat(has_value),
    "value": _flat(value_of),
    "orValue": _flat(or_value),
    "or": _flat(or_optional),
    **{name: _always(kernel) for name, kernel in TRANSCENDENTAL.items()},
}


def _scalar_form(kernel: Kernel) -> Callable[..., float]:
    """A kernel of double columns as a function of floats."""

    def scalar(*values: float) -> float:
        with np.errstate(all="ignore"):
            answer = kernel(*(Column(np.array(value)) for value in values))
        if answer.faults is not None and answer.faults.any():
            raise EvaluationError("betaCdf wants positive a and b")
        return float(answer.values)

    return scalar


SCALAR_KERNELS: Mapping[str, Callable[..., float]] = {
    name: _scalar_form(kernel) for name, kernel in TRANSCENDENTAL.items()
}
"""The transcendental functions of single values in a policy: libm may differ from numpy in the last bit, and a value
must not depend on whether it is worked out for one node or for all of them at once."""
