"""Comprehensions over one list or map: CEL's macros, with its way of treating errors.

`all` and `exists` absorb errors as `&&` and `||` do; the others fail with the first element that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from policyengine.compiler.columns.frame import Decision, Scalar
from policyengine.language import ir
from policyengine.language.values import EvaluationError, elements, to_key

_ABSENT = object()
Rounds = Callable[[Decision], Iterator[Any]]
"""Sets the variables, then yields what the first of them stands for, once an element."""


def lower_fold(expr: ir.Comprehension, source: Scalar, condition: Scalar | None, body: Scalar) -> Scalar:
    """The closure of a comprehension, its parts lowered."""
    return _FOLDS[expr.fold](_rounds(expr.variables, source), condition, body)


def _rounds(variables: tuple[str, ...], source: Scalar) -> Rounds:
    def rounds(decision: Decision) -> Iterator[Any]:
        over = source(decision)
        scope = decision.locals
        outer = [scope.get(name, _ABSENT) for name in variables]
        try:
            for values in _bindings(over, len(variables) == 2):
                scope.update(zip(variables, values, strict=True))
                yield values[0]
        finally:
            for name, value in zip(variables, outer, strict=True):
                if value is _ABSENT:
                    scope.pop(name, None)
                else:
                    scope[name] = value

    return rounds


def _bindings(over: Any, pairs: bool) -> Iterator[tuple[Any, ...]]:
    if not pairs:
        return ((element,) for element in elements(over))
    if isinstance(over, Mapping):
        return ((key, over[to_key(key)]) for key in elements(over))
    return iter(enumerate(elements(over)))


def _absorbing(decisive: bool) -> Callable[[Rounds, Scalar | None, Scalar], Scalar]:
    def fold(rounds: Rounds, condition: Scalar | None, body: Scalar) -> Scalar:
        def run(decision: Decision) -> bool:
            error: EvaluationError | None = None
            for _ in rounds(decision):
                try:
                    if bool(body(decision)) is decisive:
                        return decisive
                except EvaluationError as raised:
                    error = error or raised
            if error is not None:
                raise error
            return not decisive

        return run

    return fold


def _exists_one(rounds: Rounds, condition: Scalar | None, body: Scalar) -> Scalar:
    return lambda decision: sum(body(decision) is True for _ in rounds(decision)) == 1


def _filter(rounds: Rounds, condition: Scalar | None, body: Scalar) -> Scalar:
    return lambda decision: [element for element in rounds(decision) if body(decision)]


def _map(rounds: Rounds, condition: Scalar | None, body: Scalar) -> Scalar:
    if condition is None:
        return lambda decision: [body(decision) for _ in rounds(decision)]
    return lambda decision: [body(decision) for _ in rounds(decision) if condition(decision)]


def _transform_map(rounds: Rounds, condition: Scalar | None, body: Scalar) -> Scalar:
    def run(decision: Decision) -> dict[Any, Any]:
        return {to_key(key): body(decision) for key in rounds(decision) if condition is None or condition(decision)}

    return run


_FOLDS: dict[ir.Fold, Callable[[Rounds, Scalar | None, Scalar], Scalar]] = {
    ir.Fold.ALL: _absorbing(False),
    ir.Fold.EXISTS: _absorbing(True),
    ir.Fold.EXISTS_ONE: _exists_one,
    ir.Fold.FILTER: _filter,
    ir.Fold.MAP: _map,
    ir.Fold.TRANSFORM_LIST: _map,
    ir.Fold.TRANSFORM_MAP: _transform_map,
}
