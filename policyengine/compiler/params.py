"""Parameters from outside: plain values or text become values of the declared type, within the declared bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from policyengine import quantity
from policyengine.language import ir
from policyengine.language.checking.params import outside
from policyengine.language.types import Kind, Type
from policyengine.language.values import EvaluationError, in_int64, parse_timestamp
from policyengine.quantity import QuantityError

_UNITS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}


class ParamError(ValueError):
    """A parameter was given a value it cannot have. One sentence in lower case."""


def param_values(params: tuple[ir.Param, ...], given: Mapping[str, object]) -> dict[str, object]:
    """The value of every parameter: the one given, else its default.

    Raises:
        ParamError: a name that is no parameter, a value of the wrong type or out of bounds.
    """
    known = {param.name: param for param in params}
    for name in given:
        if name not in known:
            names = ", ".join(f"`{other}`" for other in sorted(known)) or "none"
            raise ParamError(f"`{name}` is no parameter of the policy; it has {names}")
    return {
        name: _bounded(param, convert(given[name], param.type, name)) if name in given else param.default
        for name, param in known.items()
    }


def _bounded(param: ir.Param, value: object) -> object:
    wrong = outside(param, value)
    if wrong is not None:
        raise ParamError(wrong)
    return value


def convert(value: object, type_: Type, name: str) -> object:
    """A plain value (from YAML, JSON or the command line) as a value of the type, in its grain."""
    conversion = _CONVERSIONS.get(type_.kind)
    if conversion is None:
        raise ParamError(f"parameter `{name}` of type `{type_}` cannot be set from outside")
    try:
        return conversion(value)
    except (KeyError, ValueError, TypeError, QuantityError, EvaluationError):
        raise ParamError(f"parameter `{name}`: `{value}` is not a value of type `{type_}`") from None


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value)]


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    number = float(value)
    if number - number != 0.0:
        raise ValueError
    return number


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|min|h|d)", re.ASCII)


def _duration(value: object) -> int:
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise ValueError
    return in_int64(round(Fraction(match[1]) * _UNITS[match[2]]))


def _quantity(read: Callable[[str | int | float], int]) -> Callable[[Any], int]:
    def conversion(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        return read(value)

    return conversion


_CONVERSIONS: dict[Kind, Callable[[Any], object]] = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.DOUBLE: _double,
    Kind.STRING: _string,
    Kind.DURATION: _duration,
    Kind.TIMESTAMP: lambda value: parse_timestamp(str(value)),
    Kind.CPU: _quantity(quantity.milli_value),
    Kind.MEMORY: _quantity(quantity.value),
    Kind.STORAGE: _quantity(quantity.value),
}
