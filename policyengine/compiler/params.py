"""Parameters from outside: plain values or text become values of the declared type, within the declared bounds.

A number in a text is read as a policy has it: `-7`, `0x10`, `1e3`, `-5s`, and no `1_0`, no `+7`, no digits of
another alphabet, no `5m` of memory, no `1Ki` of cpu. A text holds whole characters: half of one (a lone surrogate) is
no value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from msgspec.structs import replace

from policyengine import quantity
from policyengine.language import ir
from policyengine.language.checking.literal_types import BINARY, DECIMAL, whole
from policyengine.language.checking.param_checks import outside
from policyengine.language.diagnostics import printable
from policyengine.language.parsing.grammar import patterns
from policyengine.language.parsing.literal_values import MAX_WORD
from policyengine.language.types import Kind, Type
from policyengine.language.values import NANOSECONDS, NONE, EvaluationError, Optional, in_int64, parse_timestamp
from policyengine.quantity import QuantityError
from policyengine.suggestion import closest

_LONGEST_SHOWN = 100


class ParamError(ValueError):
    """A parameter was given a value it cannot have. One sentence in lower case."""


def param_values(params: Iterable[ir.Param], given: Mapping[str, object]) -> dict[str, object]:
    """The value of every parameter: the one given, else its default. What is given for others is theirs.

    Raises:
        ParamError: a value of the wrong type or out of bounds.
    """
    return {
        param.name: _bounded(param, given[param.name]) if param.name in given else param.default for param in params
    }


def with_params(policy: ir.Policy, given: Mapping[str, object]) -> ir.Policy:
    """The policy with other defaults for those of its params that are given. Raises as `param_values`."""
    values = param_values(policy.params, given)
    return replace(policy, params=tuple(replace(param, default=values[param.name]) for param in policy.params))


def wrong_values(params: Sequence[ir.Param], given: Mapping[str, object]) -> dict[str, str]:
    """What is wrong with the values given, by their names: no such parameter, the wrong type, or out of bounds."""
    wrong: dict[str, str] = {}
    for name in given:
        named = [param for param in params if param.name == name]
        if not named:
            wrong[name] = no_such_param(name, sorted({param.name for param in params}))
        try:
            param_values(named, given)
        except ParamError as error:
            wrong[name] = str(error)
    return wrong


def no_such_param(name: str, known: Sequence[str]) -> str:
    """What is said of a value that no param takes."""
    close = next((other for other in known if other.endswith(f".{name}")), None) or closest(name, known)
    shown = _shown(name)
    if close is not None:
        return f"`{shown}` is no parameter of the policy; did you mean `{close}`?"
    names = ", ".join(f"`{other}`" for other in known) or "none"
    return f"`{shown}` is no parameter of the policy; it has {names}"


def _bounded(param: ir.Param, given: object) -> object:
    value = convert(given, param.type, param.name)
    wrong = outside(param, value)
    if wrong is not None:
        raise ParamError(wrong)
    return value


def convert(value: object, type_: Type, name: str) -> object:
    """A plain value (from YAML, JSON or the command line) as a value of the type, in its grain.

    A list or map may be given as JSON text; the text `null`, or None, is the empty optional.
    """
    try:
        return _converted(value, type_)
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError, QuantityError, EvaluationError) as error:
        near = quantity.meant(str(value)) if isinstance(error, QuantityError) else None
        hint = f"; write {near}" if near else ""
        raise ParamError(f"parameter `{name}`: `{_shown(value)}` is not a value of type `{type_}`{hint}") from None


def _shown(value: object) -> str:
    try:
        text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    except ValueError:  # an int of more digits than Python writes
        text = "a very long number"
    return printable(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


def _converted(value: Any, type_: Type) -> object:
    match type_.kind:
        case Kind.LIST:
            return [_converted(item, type_.args[0]) for item in _parsed(value, list)]
        case Kind.MAP:
            key_type, value_type = type_.args
            entries = _parsed(value, dict).items()
            return {_converted(key, key_type): _converted(one, value_type) for key, one in entries}
        case Kind.OPTIONAL:
            return NONE if value is None or value == "null" else Optional(_converted(value, type_.args[0]))
        case _:
            accepted, convert = _CONVERSIONS[type_.kind]
            if type(value) not in accepted:
                raise ValueError
            return convert(value)


def _parsed(value: object, form: type[Any]) -> Any:
    """A list or map, or the JSON of one."""
    found = json.loads(value, object_pairs_hook=_once) if isinstance(value, str) else value
    if not isinstance(found, form):
        raise ValueError
    return found


def _bool(value: bool | str) -> bool:
    return value if isinstance(value, bool) else {"true": True, "false": False}[value]


def _int(value: int | str) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if len(digits) > MAX_WORD or not re.fullmatch(patterns()["INT"], digits):
            raise ValueError
        value = int(value, 16 if "x" in digits else 10)
    return in_int64(value)


def _double(value: float | str) -> float:
    if isinstance(value, str) and not re.fullmatch(patterns()["FLOAT"], value.removeprefix("-")):
        value = _int(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _text(value: str) -> str:
    value.encode()  # a ValueError for half a character
    return value


_DURATION = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))(ms|s|min|h|d)", re.ASCII)
_AMOUNT = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?)([mkMGTP]|[KMGTPE]i)?", re.ASCII)


def _duration(value: str) -> int:
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError
    return _grains(Fraction(match[1]) * NANOSECONDS[match[2]])


def _cpu(value: float | str) -> int:
    return _grains(_amount(value, tuple(BINARY)) * 1000)


def _bytes(value: float | str) -> int:
    return _grains(_amount(value, ("m",)))


def _amount(value: float | str, others: Sequence[str]) -> Fraction:
    """`others`: the suffixes that no amount of the kind has."""
    match = _AMOUNT.fullmatch(str(value))
    if match is None or len(match[0]) > MAX_WORD or match[2] in others:
        quantity.nanos(value)  # raises what names the suffix that is meant
        raise ValueError
    return Fraction(match[1]) * (BINARY.get(match[2]) or DECIMAL.get(match[2], 1))


def _grains(amount: Fraction) -> int:
    """Rounded as a literal is."""
    return in_int64(whole(abs(amount), amount < 0))


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_NUMBERS = (int, float, str)
_CONVERSIONS: dict[Kind, tuple[tuple[type, ...], Callable[[Any], object]]] = {
    Kind.BOOL: ((bool, str), _bool),
    Kind.INT: ((int, str), _int),
    Kind.DOUBLE: (_NUMBERS, _double),
    Kind.STRING: ((str,), _text),
    Kind.DURATION: ((str,), _duration),
    Kind.TIMESTAMP: ((str,), parse_timestamp),
    Kind.CPU: (_NUMBERS, _cpu),
    Kind.MEMORY: (_NUMBERS, _bytes),
    Kind.STORAGE: (_NUMBERS, _bytes),
}
"""Kind -> the types that stand for a value of it, and how they are read; a bool is no number."""
