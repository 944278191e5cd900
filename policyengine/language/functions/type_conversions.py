"""Conversions: CEL's `int double string bool duration timestamp`, which may fail, and the policies' own
`toInt toDouble toQuantity toDuration toTimestamp`, which answer an empty optional instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from policyengine import quantity
from policyengine.language.functions.arithmetic import QUANTITY_TYPES, divide
from policyengine.language.functions.bounds import (
    ANY_NUMBER,
    NO_NUMBER,
    Arguments,
    Bounds,
    Interval,
    of_numbers,
    outwards,
)
from policyengine.language.functions.table import Cost, Function, Overload, Style, function, or_optional
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    QOS,
    STORAGE,
    STRING,
    TIMESTAMP,
    Type,
    optional_of,
)
from policyengine.language.values import (
    EvaluationError,
    display,
    in_int64,
    parse_duration,
    parse_timestamp,
    shortened,
)

_INT = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.I | re.ASCII)
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}
DIMENSIONS = {"cpu": CPU, "memory": MEMORY, "storage": STORAGE}
"""What `toQuantity` takes as its second argument."""


def int_of_text(text: str) -> int:
    """A decimal int with an optional sign."""
    if not _INT.fullmatch(text):
        raise EvaluationError(f"`{shortened(text)}` is not an int")
    return in_int64(int(text))


def int_of_double(value: float) -> int:
    """Truncated. Doubles at the very edge of 64 bits are refused, as CEL does: they may have been rounded there."""
    if not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("not a finite number" if not math.isfinite(value) else "integer overflow")
    return int(value)


def double_of_text(text: str) -> float:
    """A decimal number, `inf` or `nan`."""
    if not _DOUBLE.fullmatch(text):
        raise EvaluationError(f"`{shortened(text)}` is not a number")
    return float(text)


def bool_of_text(text: str) -> bool:
    """The words Go's ParseBool takes: 1 t T true True TRUE, and their opposites."""
    if text not in _BOOLS:
        raise EvaluationError(f"`{shortened(text)}` is not a bool")
    return _BOOLS[text]


def cpu_of_text(text: str) -> int:
    """A Kubernetes quantity in millicores, rounded up as Kubernetes rounds it."""
    return _quantity(quantity.milli_value, text)


def bytes_of_text(text: str) -> int:
    """A Kubernetes quantity in bytes, rounded up as Kubernetes rounds it."""
    return _quantity(quantity.value, text)


def _quantity(convert: Callable[[str], int], text: str) -> int:
    try:
        return convert(text)
    except quantity.QuantityError as error:
        raise EvaluationError(str(error)) from None


def _optional(convert: Callable[[str], object]) -> Callable[[str], object]:
    """The conversion that answers None where the text says nothing of the kind."""

    def attempt(text: str) -> object:
        try:
            return convert(text)
        except EvaluationError:
            return None

    return attempt


def _finite(text: str) -> float:
    value = double_of_text(text)
    if not math.isfinite(value):
        raise EvaluationError("not a finite number")
    return value


def _texts() -> tuple[Overload, ...]:
    shown = (INT, DOUBLE, BOOL, DURATION, TIMESTAMP, *QUANTITY_TYPES, QOS)
    return tuple(Overload((type_,), STRING, _shower(type_)) for type_ in shown)


def _shower(type_: Type) -> Callable[[object], str]:
    return lambda value: display(value, type_)


def _attempt(
    name: str, doc: str, result: Type, convert: Callable[[str], object], operation: str = "convert"
) -> Function:
    overloads = or_optional(Overload((STRING,), optional_of(result), _optional(convert)))
    return function(name, Style.GLOBAL, doc, *overloads, bounds=ANY_NUMBER, cost=Cost(operation), mutants=[])


def _conversion(name: str, doc: str, *overloads: Overload, bounds: Bounds, operation: str = "text") -> Function:
    return function(name, Style.GLOBAL, doc, *overloads, bounds=bounds, cost=Cost(operation), mutants=[])


def _in_units(call: Arguments) -> Interval:
    """`double(a)`: a cpu counts in millicores."""
    (a,) = call.bounds
    return Interval(a.low / 1000, a.high / 1000) if call.types[0] == CPU else a


def _itself(type_: Type) -> Overload:
    return Overload((type_,), type_, lambda value: value)


FUNCTIONS: tuple[Function, ...] = (
    _conversion(
        "int",
        "as an int: a double truncated, a string read, a timestamp's or duration's seconds",
        _itself(INT),
        Overload((DOUBLE,), INT, int_of_double),
        Overload((STRING,), INT, int_of_text),
        Overload((TIMESTAMP,), INT, lambda nanoseconds: nanoseconds // 10**9),
        Overload((DURATION,), INT, lambda nanoseconds: divide(nanoseconds, 10**9)),
        bounds=outwards(of_numbers(lambda a: a)),
        operation="add",
    ),
    _conversion(
        "double",
        "as a double: a cpu in cores, memory and storage in bytes",
        _itself(DOUBLE),
        Overload((INT,), DOUBLE, float),
        Overload((STRING,), DOUBLE, double_of_text),
        Overload((CPU,), DOUBLE, lambda milli: milli / 1000),
        Overload((MEMORY,), DOUBLE, float),
        Overload((STORAGE,), DOUBLE, float),
        bounds=_in_units,
        operation="add",
    ),
    _conversion("string", "as text", _itself(STRING), *_texts(), bounds=NO_NUMBER),
    _conversion("bool", "as a bool", _itself(BOOL), Overload((STRING,), BOOL, bool_of_text), bounds=NO_NUMBER),
    _conversion(
        "duration",
        "a duration from text such as `1h30m`",
        _itself(DURATION),
        Overload((STRING,), DURATION, parse_duration),
        bounds=ANY_NUMBER,
    ),
    _conversion(
        "timestamp",
        "a time from RFC 3339 text",
        _itself(TIMESTAMP),
        Overload((STRING,), TIMESTAMP, parse_timestamp),
        Overload((INT,), TIMESTAMP, lambda seconds: in_int64(seconds * 10**9)),
        bounds=ANY_NUMBER,
    ),
    _attempt("toInt", "the int a string holds, if it holds one", INT, int_of_text),
    _attempt("toDouble", "the finite double a string holds, if it holds one", DOUBLE, _finite),
    _attempt("toDuration", "the duration a string holds, if it holds one", DURATION, parse_duration),
    _attempt("toTimestamp", "the time a string holds, if it holds one", TIMESTAMP, parse_timestamp),
    _attempt("toQuantity/cpu", "the cpu quantity a string holds, if it holds one", CPU, cpu_of_text, "text"),
    _attempt("toQuantity/memory", "the memory quantity a string holds, if it holds one", MEMORY, bytes_of_text, "text"),
    _attempt(
        "toQuantity/storage", "the storage quantity a string holds, if it holds one", STORAGE, bytes_of_text, "text"
    ),
)
