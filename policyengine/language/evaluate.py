"""`policyengine.evaluate`: a CEL expression on plain Python values, with the policies' own parser and functions.

Plain values are None, bool, int (64 bits), float, str, list, dict, `timedelta` and aware `datetime`. Types are
found as CEL finds them without a checker: while evaluating. What differs from CEL stands in `docs/cel.md`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from policyengine.language.evaluate_dynamic import DynamicLowering
from policyengine.language.evaluator import Closure, Evaluation, Names
from policyengine.language.parsing.member_parser import parse_expression
from policyengine.language.values import (
    NONE,
    TYPE_NAMES,
    Duration,
    EvaluationError,
    Optional,
    Timestamp,
    TypeValue,
    from_key,
    in_int64,
    to_key,
)

__all__ = ["EvaluationError", "evaluate"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DEEPEST = 64
_TYPES: dict[str, object] = dict(TYPE_NAMES)
_DOTTED_TYPES = frozenset(name for name in _TYPES if "." in name)


def evaluate(expression: str, bindings: Mapping[str, object] | None = None) -> object:
    """The value of a CEL expression.

    Arguments:
        expression: the text.
        bindings: name -> plain value; a name may be dotted (`a.b.c`).

    Returns:
        A plain value. A duration is a `timedelta` and a timestamp a `datetime` in UTC, both cut to microseconds;
        a quantity is an int (millicores, bytes); an optional is its content, or None; a type is its name.

    Raises:
        EvaluationError: the text is no expression, or it has no value (overflow, no such key, …).
        TypeError: a binding is no plain value.
    """
    values = {name: _taken_in(value, _DEEPEST) for name, value in (bindings or {}).items()}
    closure = _closure(expression, _DOTTED_TYPES.union(name for name in values if "." in name))
    return _given_out(closure(Evaluation(ChainMap(values, _TYPES))))


@lru_cache(maxsize=1024)
def _closure(expression: str, dotted: frozenset[str]) -> Closure:
    """The closure of an expression; `dotted` are the free names with dots in them.

    Raises:
        EvaluationError: the text is no expression.
    """
    syntax, findings = parse_expression(expression)
    if syntax is None or findings:
        raise EvaluationError(findings[0].message if findings else "this is no expression")
    return Names().closure(DynamicLowering(expression, dotted).lower(syntax))


@lru_cache(maxsize=1024)
def parsed(text: str) -> Callable[[Mapping[str, object]], object] | str:
    """A CEL expression from outside, such as a device selector: its value by those of its names, or why it is none.

    The values of names are taken as they are: maps may answer for absent keys themselves (`__missing__`), and
    quantities and versions of the Kubernetes libraries may stand among them. The function raises EvaluationError
    where there is no value.
    """
    try:
        closure = _closure(text, frozenset())
    except EvaluationError as error:
        return str(error)
    return lambda names: closure(Evaluation(names))


def _taken_in(value: object, depth: int) -> object:
    """A plain value as the evaluator holds it."""
    if depth < 0:
        raise TypeError(f"a binding is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool | float | str | Duration | Timestamp | Optional):
        return value
    if isinstance(value, int):
        return in_int64(value)
    if isinstance(value, list | tuple):
        return [_taken_in(item, depth - 1) for item in value]
    if isinstance(value, Mapping):
        return {_key_taken_in(key): _taken_in(content, depth - 1) for key, content in value.items()}
    if isinstance(value, timedelta):
        return Duration(in_int64(value // _MICROSECOND * 1000))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return Timestamp(in_int64((value - _EPOCH) // _MICROSECOND * 1000))
    raise TypeError(f"a binding is a plain value; `{type(value).__name__}` is none")


def _key_taken_in(key: object) -> object:
    if isinstance(key, bool | int | str):
        return to_key(key)
    raise TypeError(f"the keys of a map are str, int or bool; `{type(key).__name__}` is none")


def _given_out(value: object) -> object:
    """A value as plain Python."""
    if isinstance(value, Duration):
        return timedelta(microseconds=_cut(value))
    if isinstance(value, Timestamp):
        return _EPOCH + timedelta(microseconds=_cut(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple):
        return [_given_out(item) for item in value]
    if isinstance(value, Mapping):
        given = {from_key(key): _given_out(content) for key, content in value.items()}
        if len(given) < len(value):
            raise EvaluationError("no dict can hold both `true` and `1`, or `false` and `0`, as keys")
        return given
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Optional):
        return None if value == NONE else _given_out(value.content)
    return value


def _cut(nanoseconds: int) -> int:
    """Microseconds, truncated."""
    return nanoseconds // 1000 if nanoseconds >= 0 else -(-nanoseconds // 1000)
