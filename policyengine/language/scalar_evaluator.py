"""The scalar evaluator: an expression of the typed tree -> a closure that answers one value in plain Python.

It serves the parts of a policy that read no node, `policyengine.evaluate`, constant folding and tests.

1. A closure takes an `Evaluation` and answers a value, or raises `EvaluationError` where there is none.
2. `&&`, `||`, `all` and `exists` absorb errors that do not matter, in either order.
3. `Names` says what fields, lets and params mean. Things with fields are maps, unless it says otherwise.

For example `1 + x` becomes `lambda evaluation: add(1, evaluation.values["x"])`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from policyengine.language import ir
from policyengine.language.functions.relations import is_key
from policyengine.language.functions.table import Implementation
from policyengine.language.implementations import implementation
from policyengine.language.types import DYN, Kind, Type, content_of
from policyengine.language.values import (
    NONE,
    EvaluationError,
    Optional,
    elements,
    kind_of,
    shortened,
    to_key,
    with_article,
)

MOST_STEPS = 1_000_000
"""How often the bodies of macros may run in one evaluation of a text from outside, which may nest them."""


class Evaluation:
    """What one evaluation knows: the values of free names, the variables of macros, and the steps left."""

    __slots__ = ("locals", "steps", "values")

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self.values = values or {}
        self.locals: dict[str, Any] = {}
        self.steps: float = MOST_STEPS


Closure = Callable[[Any], Any]
"""`Evaluation` (or the subclass that the names want) -> value."""
Read = Callable[[Any], Any]
"""A thing -> one of its fields, `ABSENT` without one."""
Find = Callable[[Any, Any], Any]
"""(a thing or container, a key of it) -> what stands there, `ABSENT` for nothing."""
ABSENT: Any = object()


class Names:
    """What the names in an expression mean. Here free names have the evaluation's values, and nothing else is known."""

    def closure(self, expr: ir.Expr) -> Closure:
        """The closure of an expression or of a part of one."""
        return _FORMS[expr.__class__](expr, self)

    def field(self, expr: ir.Field) -> Closure:
        """The value of a schema path, or of a free name."""
        name = ".".join(expr.path)

        def field(evaluation: Evaluation) -> Any:
            if name in evaluation.values:
                return evaluation.values[name]
            raise EvaluationError(f"nothing is called `{name}`")

        return field

    def let(self, name: str) -> Closure:
        """The value of a let. A text from outside has none."""
        raise LookupError(name)

    def param(self, name: str) -> Closure:
        """The value of a param. A text from outside has none."""
        raise LookupError(name)

    def attribute(self, thing: Type, name: str) -> Read:
        """How a field of a thing is read."""
        return lambda value: found_in(value, name)

    def entry(self, thing: Any, key: Any) -> Any:
        """What a thing that is indexed like a map holds for a key, `ABSENT` for nothing."""
        return found_in(thing, key)


def evaluated(expr: ir.Expr, names: Names | None = None) -> Any:
    """The value of an expression that reads no free name. Raises EvaluationError: it has none."""
    return (names or Names()).closure(expr)(Evaluation())


def _const(expr: ir.Const, names: Names) -> Closure:
    value = expr.value
    return lambda evaluation: value


def _local(expr: ir.Local, names: Names) -> Closure:
    name = expr.name
    return lambda evaluation: evaluation.locals[name]


def _select(expr: ir.Select, names: Names) -> Closure:
    operand, name, thing = names.closure(expr.operand), expr.name, content_of(expr.operand.type)
    find = _finder(thing, name, names)
    is_optional = expr.optional or (thing.kind is Kind.OBJECT and expr.type.kind is Kind.OPTIONAL)
    is_typed = expr.type != DYN
    return lambda evaluation: _looked_up(operand(evaluation), name, find, is_optional, is_typed)


def _has(expr: ir.Has, names: Names) -> Closure:
    operand, name = names.closure(expr.operand), expr.name
    find = _finder(content_of(expr.operand.type), name, names)
    return lambda evaluation: _looked_up(operand(evaluation), name, find, True, False).present


def _finder(thing: Type, name: str, names: Names) -> Find:
    """How a field is found in a thing or in a map."""
    if thing.kind is not Kind.OBJECT:
        return found_in
    read = names.attribute(thing, name)
    return lambda value, _: read(value)


def _index(expr: ir.Index, names: Names) -> Closure:
    operand, key = names.closure(expr.operand), names.closure(expr.key)
    find = names.entry if content_of(expr.operand.type).kind is Kind.OBJECT else found_in
    is_optional, is_typed = expr.optional, expr.type != DYN
    return lambda evaluation: _looked_up(operand(evaluation), key(evaluation), find, is_optional, is_typed)


def _looked_up(value: Any, key: Any, find: Find, is_optional: bool, is_typed: bool) -> Any:
    """A field, a key of a map, an index of a list; of an optional the content's, and then an optional."""
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value, is_optional = value.content, True
    found = find(value, key)
    if is_optional:
        if found is ABSENT:
            return NONE
        return found if is_typed and isinstance(found, Optional) else Optional(found)
    if found is ABSENT:
        is_list = isinstance(value, list | tuple)
        raise EvaluationError("index out of range" if is_list else f"no such key `{shortened(str(key))}`")
    return found


def found_in(container: Any, key: Any) -> Any:
    """What a map or list holds for a key, `ABSENT` for nothing. Raises EvaluationError: the container is neither, or
    has no keys of this kind."""
    if isinstance(container, Mapping):
        if not is_key(key):
            raise EvaluationError(f"{_name(key)} is no key of a map")
        try:
            return container[to_key(key)]
        except KeyError:
            return ABSENT
    if isinstance(container, list | tuple):
        if isinstance(key, bool) or not isinstance(key, int | float) or key != key or key % 1:
            raise EvaluationError("the index of a list is an int")
        return container[int(key)] if 0 <= key < len(container) else ABSENT
    raise EvaluationError(f"{_name(container)} has no fields")


def _name(value: object) -> str:
    return with_article(kind_of(value).value)


def _call(expr: ir.Call, names: Names) -> Closure:
    args = tuple(map(names.closure, expr.args))
    function = implementation(expr)
    if expr.function in _DEFAULTING and len(args) == 2:
        return _defaulted(expr.function == "or", *args, function)
    return lambda evaluation: function(*[arg(evaluation) for arg in args])


_DEFAULTING = frozenset(("or", "orValue"))


def _defaulted(whole: bool, first: Closure, second: Closure, function: Implementation) -> Closure:
    """`o.orValue(d)`, `o.or(p)`: as in cel-go, a default that is not needed is not evaluated, so it cannot err."""

    def defaulted(evaluation: Evaluation) -> Any:
        held = first(evaluation)
        if isinstance(held, Optional) and held.present:
            return held if whole else held.content
        return function(held, second(evaluation))

    return defaulted


def _truth(expr: ir.Expr, names: Names) -> Closure:
    """The closure of a bool; of a dynamic tree it fails where the value is none."""
    closure = names.closure(expr)
    if expr.type != DYN:
        return closure

    def truth(evaluation: Evaluation) -> bool:
        value = closure(evaluation)
        if isinstance(value, bool):
            return value
        raise EvaluationError(f"a bool is wanted, this is {_name(value)}")

    return truth


def _logic(expr: ir.Logic, names: Names) -> Closure:
    operands = tuple(_truth(operand, names) for operand in expr.operands)
    decisive = expr.op == "||"
    return lambda evaluation: _decided(operands, evaluation, decisive)


def _decided(tests: Iterable[Closure], evaluation: Evaluation, decisive: bool) -> bool:
    """`decisive` if one of the tests gives it; an error counts only where none does."""
    error: EvaluationError | None = None
    for test in tests:
        try:
            if bool(test(evaluation)) is decisive:
                return decisive
        except EvaluationError as raised:
            error = error or raised
    if error is not None:
        raise error
    return not decisive


def _conditional(expr: ir.Conditional, names: Names) -> Closure:
    condition = _truth(expr.condition, names)
    then, otherwise = names.closure(expr.then), names.closure(expr.otherwise)
    return lambda evaluation: then(evaluation) if condition(evaluation) else otherwise(evaluation)


def _list(expr: ir.ListExpr, names: Names) -> Closure:
    items = tuple((names.closure(item), is_optional) for item, is_optional in expr.items)

    def build(evaluation: Evaluation) -> list[Any]:
        values: list[Any] = []
        for item, is_optional in items:
            value = item(evaluation)
            values += _contents(value) if is_optional else [value]
        return values

    return build


def _map(expr: ir.MapExpr, names: Names) -> Closure:
    entries = tuple((names.closure(key), names.closure(value), maybe) for key, value, maybe in expr.entries)

    def build(evaluation: Evaluation) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        for key_of, value_of, is_optional in entries:
            key, value = key_of(evaluation), value_of(evaluation)
            if not is_key(key) or isinstance(key, float):
                raise EvaluationError(f"{_name(key)} is no key of a map")
            if to_key(key) in values:
                raise EvaluationError(f"the key `{key}` is given twice")
            for content in _contents(value) if is_optional else [value]:
                values[to_key(key)] = content
        return values

    return build


def _contents(value: Any) -> list[Any]:
    """What `?value` adds to a list or map."""
    if not isinstance(value, Optional):
        raise EvaluationError(f"`?` is for optionals, this is {_name(value)}")
    return [value.content] if value.present else []


def _opt_map(expr: ir.OptMap, names: Names) -> Closure:
    operand, body, variable, flat = names.closure(expr.operand), names.closure(expr.body), expr.variable, expr.flat

    def mapped(evaluation: Evaluation) -> Optional:
        held = operand(evaluation)
        if not isinstance(held, Optional):
            raise EvaluationError(f"an optional is wanted, this is {_name(held)}")
        if not held.present:
            return NONE
        outer = evaluation.locals
        evaluation.locals = {**outer, variable: held.content}
        try:
            result = body(evaluation)
        finally:
            evaluation.locals = outer
        if not flat:
            return Optional(result)
        if not isinstance(result, Optional):
            raise EvaluationError(f"`optFlatMap` makes an optional, this is {_name(result)}")
        return result

    return mapped


def _comprehension(expr: ir.Comprehension, names: Names) -> Closure:
    """A macro over one list or map. Its variables stand in a dict of their own, so that outer ones come back."""
    source, fold, variables = names.closure(expr.source), _MACROS[expr.fold], expr.variables
    condition = None if expr.condition is None else _truth(expr.condition, names)
    body = _truth(expr.body, names) if expr.fold in _TESTING else names.closure(expr.body)

    def run(evaluation: Evaluation) -> Any:
        over, outer = source(evaluation), evaluation.locals
        evaluation.locals = dict(outer)
        try:
            rounds = _rounds(variables, over, evaluation)
            return fold((one for one in rounds if condition is None or condition(evaluation)), evaluation, body)
        finally:
            evaluation.locals = outer

    return run


def _rounds(variables: tuple[str, ...], over: Any, evaluation: Evaluation) -> Iterator[Any]:
    """Sets the variables and yields the first of them, once an element.

    They stand for the element, or for index and element, or for key and value.
    """
    own = evaluation.locals
    for index, element in enumerate(elements(over)):
        evaluation.steps -= 1
        if evaluation.steps < 0:
            raise EvaluationError("the expression takes too many steps")
        if len(variables) == 1:
            pair: tuple[Any, ...] = (element,)
        else:
            pair = (element, over[to_key(element)]) if isinstance(over, Mapping) else (index, element)
        own.update(zip(variables, pair, strict=True))
        yield pair[0]


_MACROS: Mapping[ir.Fold, Callable[[Iterator[Any], Evaluation, Closure], Any]] = {
    ir.Fold.ALL: lambda rounds, evaluation, body: _decided((body for _ in rounds), evaluation, False),
    ir.Fold.EXISTS: lambda rounds, evaluation, body: _decided((body for _ in rounds), evaluation, True),
    ir.Fold.EXISTS_ONE: lambda rounds, evaluation, body: sum(body(evaluation) for _ in rounds) == 1,
    ir.Fold.FILTER: lambda rounds, evaluation, body: [element for element in rounds if body(evaluation)],
    ir.Fold.MAP: lambda rounds, evaluation, body: [body(evaluation) for _ in rounds],
    ir.Fold.TRANSFORM_LIST: lambda rounds, evaluation, body: [body(evaluation) for _ in rounds],
    ir.Fold.TRANSFORM_MAP: lambda rounds, evaluation, body: {to_key(key): body(evaluation) for key in rounds},
}
_TESTING = frozenset({ir.Fold.ALL, ir.Fold.EXISTS, ir.Fold.EXISTS_ONE, ir.Fold.FILTER})
_FORMS: Mapping[type[ir.Expr], Callable[[Any, Names], Closure]] = {
    ir.Const: _const,
    ir.Field: lambda expr, names: names.field(expr),
    ir.LetRef: lambda expr, names: names.let(expr.name),
    ir.ParamRef: lambda expr, names: names.param(expr.name),
    ir.Local: _local,
    ir.Select: _select,
    ir.Index: _index,
    ir.Has: _has,
    ir.Call: _call,
    ir.Logic: _logic,
    ir.Conditional: _conditional,
    ir.ListExpr: _list,
    ir.MapExpr: _map,
    ir.OptMap: _opt_map,
    ir.Comprehension: _comprehension,
}
