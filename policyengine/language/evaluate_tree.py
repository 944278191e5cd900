"""The scalar evaluator: one value of a typed tree at a time, in plain Python.

The same walk serves a policy's expressions (types known: the overload follows from them) and dynamic trees of
`policyengine.evaluate` (type dyn: the overload follows from the values). An expression without a value raises
`EvaluationError`; `&&`, `||`, `all` and `exists` absorb errors that do not matter, in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from policyengine.language import ir
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.comparison import is_key
from policyengine.language.functions.table import dispatch, select
from policyengine.language.types import DYN, Kind
from policyengine.language.values import (
    NONE,
    EvaluationError,
    Optional,
    box,
    elements,
    kind_of,
    shortened,
    to_key,
    with_article,
)

MOST_STEPS = 1_000_000
"""How often the bodies of macros may run in one evaluation: text from outside may nest them."""

Locals = Mapping[str, object]


class Environment(Protocol):
    """Where names get their values. Each raises `EvaluationError` for a name without one."""

    def field(self, path: tuple[str, ...]) -> object:
        """The value of a schema path, or of a free variable."""

    def let(self, name: str) -> object:
        """The value of a let."""

    def param(self, name: str) -> object:
        """The value of a param."""


class NoNames:
    """An environment for expressions that stand for themselves."""

    def field(self, path: tuple[str, ...]) -> object:
        """No path has a value."""
        raise EvaluationError(f"nothing is called `{'.'.join(path)}`")

    def let(self, name: str) -> object:
        """No let has a value."""
        raise EvaluationError(f"nothing is called `{name}`")

    param = let


_DEFAULTING = frozenset(("or", "orValue"))


class TreeEvaluator:
    """Evaluates trees in one environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._steps = 0

    def value(self, expr: ir.Expr, variables: Locals | None = None) -> object:
        """The value of an expression.

        Raises:
            EvaluationError: it has none.
        """
        variables = variables or {}
        match expr:
            case ir.Const():
                return expr.value
            case ir.Field():
                return self._environment.field(expr.path)
            case ir.LetRef():
                return self._environment.let(expr.name)
            case ir.ParamRef():
                return self._environment.param(expr.name)
            case ir.Local():
                return variables[expr.name]
            case ir.Call():
                return self._call(expr, variables)
            case ir.Logic():
                tests = (partial(self._truth, part, variables) for part in expr.operands)
                return decided(tests, expr.op == "||")
            case _:
                return self._structure(expr, variables)

    def _structure(self, expr: ir.Expr, variables: Locals) -> object:
        match expr:
            case ir.Conditional():
                chosen = expr.then if self._truth(expr.condition, variables) else expr.otherwise
                return self.value(chosen, variables)
            case ir.Select():
                return _looked_up(expr, self.value(expr.operand, variables), expr.name, expr.optional)
            case ir.Index():
                operand, key = self.value(expr.operand, variables), self.value(expr.key, variables)
                return _looked_up(expr, operand, key, expr.optional)
            case ir.Has():
                return _has(self.value(expr.operand, variables), expr.name)
            case ir.ListExpr():
                return self._list(expr, variables)
            case ir.MapExpr():
                return self._map(expr, variables)
            case ir.OptMap():
                return self._opt_map(expr, variables)
            case ir.Comprehension():
                return self._comprehension(expr, variables)
        raise AssertionError(f"no value for {type(expr).__name__}")

    # --- calls ----------------------------------------------------------------------------------------

    def _call(self, expr: ir.Call, variables: Locals) -> object:
        first = [self.value(arg, variables) for arg in expr.args[:1]]
        if expr.function in _DEFAULTING and isinstance(first[0], Optional) and first[0].present:
            # As in cel-go, a default that is not needed is not evaluated, so it cannot err.
            return first[0] if expr.function == "or" else first[0].content
        values = first + [self.value(arg, variables) for arg in expr.args[1:]]
        return apply(expr, values)

    # --- bools ----------------------------------------------------------------------------------------

    def _truth(self, expr: ir.Expr, variables: Locals) -> bool:
        value = self.value(expr, variables)
        if isinstance(value, bool):
            return value
        raise EvaluationError(f"a bool is wanted, this is {_name(value)}")

    # --- structures -----------------------------------------------------------------------------------

    def _list(self, expr: ir.ListExpr, variables: Locals) -> list[object]:
        items: list[object] = []
        for part, optional in expr.items:
            value = self.value(part, variables)
            items += _contents(value) if optional else [value]
        return items

    def _map(self, expr: ir.MapExpr, variables: Locals) -> dict[object, object]:
        entries: dict[object, object] = {}
        for key_expr, value_expr, optional in expr.entries:
            key, value = self.value(key_expr, variables), self.value(value_expr, variables)
            if not is_key(key) or isinstance(key, float):
                raise EvaluationError(f"{_name(key)} is no key of a map")
            if to_key(key) in entries:
                raise EvaluationError(f"the key `{key}` is given twice")
            for content in _contents(value) if optional else [value]:
                entries[to_key(key)] = content
        return entries

    def _opt_map(self, expr: ir.OptMap, variables: Locals) -> object:
        operand = self.value(expr.operand, variables)
        if not isinstance(operand, Optional):
            raise EvaluationError(f"an optional is wanted, this is {_name(operand)}")
        if not operand.present:
            return NONE
        result = self.value(expr.body, {**variables, expr.variable: operand.content})
        if not expr.flat:
            return Optional(result)
        if not isinstance(result, Optional):
            raise EvaluationError(f"`optFlatMap` makes an optional, this is {_name(result)}")
        return result

    # --- macros ---------------------------------------------------------------------------------------

    def _comprehension(self, expr: ir.Comprehension, variables: Locals) -> object:
        source = self.value(expr.source, variables)
        scopes = ({**variables, **bound} for bound in self._bindings(expr.variables, source))
        if expr.fold is ir.Fold.ALL or expr.fold is ir.Fold.EXISTS:
            tests = (partial(self._truth, expr.body, scope) for scope in scopes)
            return decided(tests, expr.fold is ir.Fold.EXISTS)
        if expr.fold is ir.Fold.EXISTS_ONE:
            return sum(self._truth(expr.body, scope) for scope in scopes) == 1
        if expr.fold is ir.Fold.FILTER:
            return [scope[expr.variables[-1]] for scope in scopes if self._truth(expr.body, scope)]
        kept = (scope for scope in scopes if expr.condition is None or self._truth(expr.condition, scope))
        if expr.fold is ir.Fold.TRANSFORM_MAP:
            return {to_key(scope[expr.variables[0]]): self.value(expr.body, scope) for scope in kept}
        return [self.value(expr.body, scope) for scope in kept]

    def _bindings(self, names: tuple[str, ...], source: object) -> Iterator[dict[str, object]]:
        """What the variables stand for, an element at a time: the element, or index and element, or key and value."""
        for index, element in enumerate(elements(source)):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise EvaluationError("the expression takes too many steps")
            if len(names) == 1:
                yield {names[0]: element}
            elif isinstance(source, Mapping):
                yield {names[0]: element, names[1]: source[to_key(element)]}
            else:
                yield {names[0]: index, names[1]: element}


def decided(tests: Iterable[Callable[[], bool]], wanted: bool) -> bool:
    """`wanted` if one of the tests gives it; an error counts only where none does."""
    failed: EvaluationError | None = None
    for test in tests:
        try:
            if test() is wanted:
                return wanted
        except EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not wanted


def apply(call: ir.Call, values: Sequence[object]) -> object:
    """A function of the table on values: by static types, or by the values' own where the result is dyn.

    Raises:
        EvaluationError: there is no such function, or none for these values, or it has no result.
    """
    row = FUNCTIONS.get(call.function)
    if row is None:
        raise EvaluationError(f"no function is called `{shortened(call.function)}`")
    taken, type_ = values, call.type
    if call.type != DYN:
        chosen = select(row.overloads, [arg.type for arg in call.args])
        overload, type_ = chosen if chosen else (None, type_)
    else:
        overload = dispatch(row.overloads, values)
        if overload is None:
            taken = _literals_bent(call.args, values, alone=len(row.overloads) == 1)
            overload = dispatch(row.overloads, taken)
        type_ = overload.result if overload else type_
    if overload is None:
        kinds = ", ".join(kind_of(value).value for value in values) or "nothing"
        raise EvaluationError(f"`{call.function.strip('_@')}` does not take {kinds}")
    answer = overload.implementation(*taken)
    return box(type_, answer) if call.type == DYN or type_.kind is Kind.OPTIONAL else answer


def _literals_bent(args: Sequence[ir.Expr], values: Sequence[object], *, alone: bool) -> list[object]:
    """Int literals as doubles beside a double that is none (`100 * ratio(a, b)`), as a policy has them; where a
    function has one signature, `alone` too (`sqrt(2)`)."""
    written = [isinstance(arg, ir.Const) for arg in args]
    bent = alone or any(type(value) is float and not literal for value, literal in zip(values, written, strict=True))
    return [
        float(value) if bent and literal and type(value) is int else value
        for value, literal in zip(values, written, strict=True)
    ]


def _looked_up(expr: ir.Expr, operand: object, key: object, optional: bool) -> object:
    """A key of a map, an index of a list; of an optional the content's, and then an optional."""
    if isinstance(operand, Optional):
        if not operand.present:
            return NONE
        operand, optional = operand.content, True
    found = _find(operand, key)
    if not optional:
        if found.present:
            return found.content
        what = "index out of range" if isinstance(operand, list | tuple) else f"no such key `{shortened(str(key))}`"
        raise EvaluationError(what)
    if expr.type != DYN and isinstance(found.content, Optional):
        return found.content
    return found


def _find(operand: object, key: object) -> Optional:
    if isinstance(operand, Mapping):
        if not is_key(key):
            raise EvaluationError(f"{_name(key)} is no key of a map")
        try:
            return Optional(operand[to_key(key)])
        except KeyError:
            return NONE
    if isinstance(operand, list | tuple):
        if isinstance(key, bool) or not isinstance(key, int | float) or key != key or key % 1:
            raise EvaluationError("the index of a list is an int")
        return Optional(operand[int(key)]) if 0 <= key < len(operand) else NONE
    raise EvaluationError(f"{_name(operand)} has no fields")


def _has(operand: object, name: str) -> bool:
    if isinstance(operand, Optional):
        return operand.present and _has(operand.content, name)
    if isinstance(operand, Mapping):
        return name in operand
    raise EvaluationError(f"{_name(operand)} has no fields")


def _contents(value: object) -> list[object]:
    """What `?value` adds to a list or map."""
    if not isinstance(value, Optional):
        raise EvaluationError(f"`?` is for optionals, this is {_name(value)}")
    return [value.content] if value.present else []


def _name(value: object) -> str:
    return with_article(kind_of(value).value)
