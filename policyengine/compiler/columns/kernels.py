"""The column kernel of every function, chosen by the types of the arguments; what has none is computed by value.

A kernel takes the argument columns and answers a column. `KERNELS` names every function that a policy can call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from policyengine import elementary
from policyengine.compiler.columns import arithmetic_kernels as arithmetic
from policyengine.compiler.columns import logic_kernels as logic
from policyengine.compiler.columns.arithmetic_kernels import Kernel
from policyengine.compiler.columns.column import Array, Column
from policyengine.language import ir
from policyengine.language.functions.probability import stream_of
from policyengine.language.types import QUANTITIES, Kind, Type

WHOLE = QUANTITIES | {Kind.INT, Kind.DURATION, Kind.TIMESTAMP}
"""Kinds held as int64."""
SCALED = QUANTITIES | {Kind.DURATION}
_DOUBLE = frozenset({Kind.DOUBLE})

Chooser = Callable[[tuple[Type, ...]], Kernel | None]
"""The types of the arguments -> the kernel, None where such a call is computed by value."""


def kernel_of(call: ir.Call) -> Kernel | None:
    """The column kernel of a call, None where it is computed by value."""
    return _kernel(call.function, tuple([arg.type for arg in call.args]))


@lru_cache(maxsize=4096)
def _kernel(function: str, types: tuple[Type, ...]) -> Kernel | None:
    choose = KERNELS.get(function)
    return None if choose is None else choose(types)


# --- how a kernel is chosen ------------------------------------------------------------------------------


def _all(types: tuple[Type, ...], kinds: frozenset[Kind]) -> bool:
    return all(type_.kind in kinds for type_ in types)


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
    return lambda types: logic.ordering(function, *types)


def _equal(types: tuple[Type, ...]) -> Kernel | None:
    return logic.equality(*types)


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


_MIN = _folded(arithmetic.extreme(np.minimum), arithmetic.extreme_double(np.less))
_MAX = _folded(arithmetic.extreme(np.maximum), arithmetic.extreme_double(np.greater))


def _clamp(types: tuple[Type, ...]) -> Kernel | None:
    low, high = _MAX(types[:2]), _MIN(types[1:])
    if low is None or high is None or types[0].kind not in WHOLE | _DOUBLE:
        return None
    return lambda value, least, most: high(low(value, least), most)


def _always(kernel: Kernel) -> Chooser:
    return lambda types: kernel


def _by_value(types: tuple[Type, ...]) -> None:
    """No kernel: the scalar implementation answers once for each distinct combination of arguments."""


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


def _flat(kernel: Kernel) -> Chooser:
    """A kernel of optionals, for those whose content is no optional itself."""

    def choose(types: tuple[Type, ...]) -> Kernel | None:
        return None if types[0].args[0].kind is Kind.OPTIONAL else kernel

    return choose


KERNELS: Mapping[str, Chooser] = {
    "_+_": _whole_or_double(arithmetic.add, arithmetic.double_kernel(np.add)),
    "_-_": _whole_or_double(arithmetic.subtract, arithmetic.double_kernel(np.subtract)),
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _always(arithmetic.remainder),
    "-_": _whole_or_double(arithmetic.negate, arithmetic.double_kernel(np.negative)),
    "!_": _always(negated),
    **{name: _ordering(name) for name in logic.ORDERINGS},
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
    "hasValue": _flat(logic.has_value),
    "value": _flat(logic.value_of),
    "orValue": _flat(logic.or_value),
    "or": _flat(logic.or_optional),
    "sqrt": _always(arithmetic.double_kernel(np.sqrt)),
    "ln": _always(arithmetic.elementary(elementary.ln)),
    "exp": _always(arithmetic.elementary(elementary.exp)),
    "pow": _always(arithmetic.elementary(elementary.power)),
    "betaCdf": _always(arithmetic.beta_share),
    # Of the node's name `lower.vector` has a kernel; of other names it is rare.
    "random": _by_value,
    **dict.fromkeys(("history", "podGroup"), _by_value),
    # Strings, lists and times: a column holds few distinct values of them.
    **dict.fromkeys(("@in", "size", "hash", "sum", "avg", "stddev"), _by_value),
    **dict.fromkeys(("string", "bool", "duration", "timestamp"), _by_value),
    **dict.fromkeys(("toInt", "toDouble", "toDuration", "toTimestamp", "trailingInt"), _by_value),
    **dict.fromkeys(("toQuantity/cpu", "toQuantity/memory", "toQuantity/storage"), _by_value),
    **dict.fromkeys(("optional.of", "optional.none", "optional.ofNonZeroValue"), _by_value),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches", "lowerAscii", "upperAscii", "trim"), _by_value),
    **dict.fromkeys(("replace", "split", "join", "substring", "charAt", "indexOf", "lastIndexOf"), _by_value),
    **dict.fromkeys(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), _by_value),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), _by_value),
}
"""Function -> how its kernel is chosen. A test demands an entry for each function."""


def random_kernel(names: Sequence[Column], name_hash: NDArray[np.uint64]) -> Column:
    """`random()` for all nodes at once, doubles in [0, 1): the function table's generator on 64-bit columns.

    `names` are the pod's UID, the rule and the stream, one value each. `name_hash` is the node table's, whose bytes
    stand the other way round than those that the generator starts from.
    """
    uid, rule, stream = (str(column.dictionary[int(column.values)]) for column in names if column.dictionary)
    seed = np.uint64(stream_of(uid, rule, stream))
    bits = _mixed(np.bitwise_xor(name_hash.byteswap(), seed)) >> np.uint64(11)
    return Column(bits.astype(np.float64) * 2.0**-53)


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finaliser; uint64 arithmetic wraps around as it wants."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
