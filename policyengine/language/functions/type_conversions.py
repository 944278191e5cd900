"""Conversions: CEL's `int double string bool duration timestamp`, which may fail, and the policies' own
`toInt toDouble toQuantity toDuration toTimestamp`, which answer an empty optional instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from policyengine import quantity
from policyengine.language.functions.answer_bounds import (
    ANY_NUMBER,
    EVERYTHING,
    NO_NUMBER,
    Arguments,
    Bounds,
    Interval,
    outwards,
)
from policyengine.language.functions.arithmetic import divide
from policyengine.language.functions.table import (
    GROUPS,
    Cost,
    Function,
    Implementation,
    Signatures,
    Style,
    function,
    or_optional,
)
from policyengine.language.types import CPU, MEMORY, STORAGE, STRING, Kind
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


def _quantity(convert: Callable[[str], int], text: str) -> int:
    """A Kubernetes quantity in millicores or bytes, rounded up as Kubernetes rounds it."""
    try:
        return convert(text)
    except quantity.QuantityError as error:
        raise EvaluationError(str(error)) from None


def _optional(convert: Implementation) -> Implementation:
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


def _conversion(name: str, doc: str, overloads: Signatures, bounds: Bounds, operation: str = "text") -> Function:
    return function(name, Style.GLOBAL, doc, overloads, bounds=bounds, cost=Cost(operation))


def _attempt(
    name: str, doc: str, result: str, convert: Callable[[str], object], operation: str = "convert"
) -> Function:
    overloads = or_optional(f"string -> optional({result})", _optional(convert))
    return _conversion(name, doc, overloads, ANY_NUMBER, operation)


def _itself(value: object) -> object:
    return value


def _in_units(call: Arguments) -> Interval:
    """`double(a)`: a cpu counts in millicores; a text may say `nan`."""
    (a,) = call.bounds
    if call.types[0] == STRING:
        return EVERYTHING
    return outwards(a.low / 1000, a.high / 1000) if call.types[0] == CPU else a


def _in_seconds(call: Arguments) -> Interval:
    """`int(a)`: a time or a duration counts in nanoseconds."""
    (a,) = call.bounds
    if call.types[0].kind in (Kind.TIMESTAMP, Kind.DURATION):
        return outwards(a.low / 10**9, a.high / 10**9)
    return a


FUNCTIONS: tuple[Function, ...] = (
    _conversion(
        "int",
        "as an int: a double truncated, a string read, a timestamp's or duration's seconds",
        {
            "int -> int": _itself,
            "double -> int": int_of_double,
            "string -> int": int_of_text,
            "timestamp -> int": lambda nanoseconds: nanoseconds // 10**9,
            "duration -> int": lambda nanoseconds: divide(nanoseconds, 10**9),
        },
        _in_seconds,
        "add",
    ),
    _conversion(
        "double",
        "as a double: a cpu in cores, memory and storage in bytes",
        {
            "double -> double": _itself,
            "int -> double": float,
            "string -> double": double_of_text,
            "cpu -> double": lambda milli: milli / 1000,
            "memory -> double": float,
            "storage -> double": float,
        },
        _in_units,
        "add",
    ),
    _conversion(
        "string",
        "as text",
        {
            "string -> string": _itself,
            **{f"{one} -> string": partial(display, type_=one) for one in GROUPS["ordered"] if one != STRING},
        },
        NO_NUMBER,
    ),
    _conversion("bool", "as a bool", {"bool -> bool": _itself, "string -> bool": bool_of_text}, NO_NUMBER),
    _conversion(
        "duration",
        "a duration from text such as `1h30m`",
        {"duration -> duration": _itself, "string -> duration": parse_duration},
        ANY_NUMBER,
    ),
    _conversion(
        "timestamp",
        "a time from RFC 3339 text",
        {
            "timestamp -> timestamp": _itself,
            "string -> timestamp": parse_timestamp,
            "int -> timestamp": lambda seconds: in_int64(seconds * 10**9),
        },
        ANY_NUMBER,
    ),
    _attempt("toInt", "the int a string holds, if it holds one", "int", int_of_text),
    _attempt("toDouble", "the finite double a string holds, if it holds one", "double", _finite),
    _attempt("toDuration", "the duration a string holds, if it holds one", "duration", parse_duration),
    _attempt("toTimestamp", "the time a string holds, if it holds one", "timestamp", parse_timestamp),
    *(
        _attempt(
            f"toQuantity/{name}",
            f"the {name} quantity a string holds, if it holds one",
            name,
            partial(_quantity, quantity.milli_value if name == "cpu" else quantity.value),
            "text",
        )
        for name in DIMENSIONS
    ),
)
