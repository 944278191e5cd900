"""`policyengine.evaluate`: a CEL expression on plain Python values, with the policies' own parser and functions.

Plain values are None, bool, int (64 bits), float, str, list, dict, `timedelta` and aware `datetime`. Types are
found as CEL finds them without a checker: while evaluating. What differs from CEL stands in `docs/cel.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from policyengine.language import ir
from policyengine.language.evaluate_dynamic import DynamicLowering
from policyengine.language.evaluate_tree import NoNames, TreeEvaluator
from policyengine.language.parse_expression import parse_expression
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
_DOTTED_TYPES = frozenset(name for name in TYPE_NAMES if "." in name)


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
    tree = _lowered(expression, _DOTTED_TYPES.union(name for name in values if "." in name))
    return _given_out(TreeEvaluator(_Bindings(values)).value(tree))


@lru_cache(maxsize=1024)
def _lowered(expression: str, dotted: frozenset[str]) -> ir.Expr:
    syntax, findings = parse_expression(expression)
    if syntax is None or findings:
        raise EvaluationError(findings[0].message if findings else "this is no expression")
    return DynamicLowering(expression, dotted).lower(syntax)


class _Bindings(NoNames):
    """Free variables by name."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def field(self, path: tuple[str, ...]) -> object:
        """The value of a free variable."""
        name = ".".join(path)
        if name in self._values:
            return self._values[name]
        return TYPE_NAMES[name] if name in TYPE_NAMES else super().field(path)


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
