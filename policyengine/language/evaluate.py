"""`policyengine.evaluate`: a CEL expression on plain Python values, with the policies' own parser and functions.

Plain values are None, bool, int (64 bits), float, str, list, dict, `timedelta` and aware `datetime`. Types are
found as CEL finds them without a checker: while evaluating. So the syntax becomes a tree of type dyn: only what CEL's
own parser would refuse is refused there, everything else is decided by values. What differs from CEL stands in
`docs/cel.md`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Set
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from policyengine.language import ir, syntax
from policyengine.language.checking.literal_types import BINARY, DECIMAL, whole
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.functions.type_conversions import DIMENSIONS
from policyengine.language.parsing.member_parser import parse_expression
from policyengine.language.scalar_evaluator import Closure, Evaluation, Names
from policyengine.language.types import DYN
from policyengine.language.values import (
    INT64_MAX,
    INT64_MIN,
    NANOSECONDS,
    NONE,
    TYPE_NAMES,
    Cpu,
    Duration,
    EvaluationError,
    Memory,
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
    """The closure of an expression; `dotted` are the free names with dots in them. Raises EvaluationError: the text is
    no expression."""
    syntax, findings = parse_expression(expression)
    if syntax is None or findings:
        raise EvaluationError(findings[0].message if findings else "this is no expression")
    return Names().closure(DynamicLowering(expression, dotted).lower(syntax))


@lru_cache(maxsize=1024)
def parsed(text: str) -> Callable[[Evaluation], object] | str:
    """A CEL expression from outside, such as a device selector: its value by those of its names, or why it is none.

    The values of names are taken as they are: maps may answer for absent keys themselves (`__missing__`), and
    quantities and versions of the Kubernetes libraries may stand among them. The function takes an `Evaluation`, whose
    steps it uses up, and raises EvaluationError where there is no value.
    """
    try:
        return _closure(text, frozenset())
    except EvaluationError as error:
        return str(error)


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


_FOLDS = {fold.value: fold for fold in ir.Fold} | {"existsOne": ir.Fold.EXISTS_ONE}
_TRANSFORMS = frozenset({"transformList", "transformMap"})
_ONE_VARIABLE = _FOLDS.keys() - _TRANSFORMS
_TWO_VARIABLES = _FOLDS.keys() - {"filter", "map"}
_WITH_CONDITION = _TRANSFORMS | {"map"}
_Number = syntax.Literal | syntax.QuantityLiteral | syntax.DurationLiteral
_Made = TypeVar("_Made", bound=ir.Expr)


class DynamicLowering:
    """Makes dynamic trees. `text`: of the expressions; `names`: the free variables, dotted ones (`a.b.c`) included."""

    def __init__(self, text: str, names: Set[str]) -> None:
        self._text = text
        self._names = names
        self._locals: list[str] = []

    def lower(self, expr: syntax.Expr) -> ir.Expr:
        """The tree of an expression. Raises EvaluationError: it holds what CEL on plain values has not (bytes, uint,
        messages), or a misused macro."""
        match expr:
            case syntax.Literal() | syntax.QuantityLiteral() | syntax.DurationLiteral():
                return _made(ir.Const, expr, value=_value(expr, 1))
            case syntax.Name():
                is_local = expr.name in self._locals and not expr.absolute
                return _made(ir.Local, expr, name=expr.name) if is_local else _made(ir.Field, expr, path=(expr.name,))
            case syntax.Select():
                return self._select(expr)
            case syntax.Index():
                operand, key = self.lower(expr.operand), self.lower(expr.key)
                return _made(ir.Index, expr, operand=operand, key=key, optional=expr.optional)
            case syntax.Call():
                return self._call(expr)
            case syntax.Unary():
                return self._unary(expr)
            case syntax.Binary():
                return self._binary(expr)
            case syntax.Conditional():
                condition, then, otherwise = map(self.lower, (expr.condition, expr.then, expr.otherwise))
                return _made(ir.Conditional, expr, condition=condition, then=then, otherwise=otherwise)
            case syntax.ListLiteral():
                items = tuple((self.lower(item.value), item.optional) for item in expr.items)
                return _made(ir.ListExpr, expr, items=items)
            case syntax.MapLiteral():
                entries = tuple((self.lower(e.key), self.lower(e.value), e.optional) for e in expr.entries)
                return _made(ir.MapExpr, expr, entries=entries)
        raise EvaluationError("bytes, uint and messages are no plain values")

    def _select(self, expr: syntax.Select) -> ir.Expr:
        dotted = _dotted(expr)
        if dotted is not None and dotted in self._names and dotted.split(".")[0] not in self._locals:
            return _made(ir.Field, expr, path=(dotted,))
        return _made(ir.Select, expr, operand=self.lower(expr.operand), name=expr.field, optional=expr.optional)

    def _unary(self, expr: syntax.Unary) -> ir.Expr:
        operand = expr.operand
        # CEL's parsers drop two `!` or `-` in a row, unread.
        if isinstance(operand, syntax.Unary) and self._text.startswith(expr.op, operand.span.start):
            return self.lower(operand.operand)
        is_number = type(operand.value) in (int, float) if isinstance(operand, syntax.Literal) else True
        if expr.op == "-" and isinstance(operand, _Number) and is_number:
            return _made(ir.Const, operand, value=_value(operand, -1))
        return _made(ir.Call, expr, function=f"{expr.op}_", args=(self.lower(operand),))

    def _binary(self, expr: syntax.Binary) -> ir.Expr:
        left, right = self.lower(expr.left), self.lower(expr.right)
        if expr.op in ("&&", "||"):
            chained = left.operands if isinstance(left, ir.Logic) and left.op == expr.op else (left,)
            return _made(ir.Logic, expr, op=expr.op, operands=(*chained, right))
        return _made(ir.Call, expr, function="@in" if expr.op == "in" else f"_{expr.op}_", args=(left, right))

    def _call(self, expr: syntax.Call) -> ir.Expr:
        name, target, args = expr.function, expr.target, expr.args
        if target is None:
            if name == "has":
                return self._has(expr)
            if name == "dyn" and len(args) == 1:
                return self.lower(args[0])
            if name == "toQuantity" and len(args) == 2 and isinstance(args[1], syntax.Name):
                name = f"toQuantity/{args[1].name}" if args[1].name in DIMENSIONS else name
                args = args[:1]
        elif isinstance(target, syntax.Name) and target.name == "optional" and not self._is_bound("optional"):
            name, target = f"optional.{name}", None
        elif isinstance(target, syntax.Name) and target.name == "cel" and name == "bind" and not self._is_bound("cel"):
            return self._bind(expr)
        elif name in _FOLDS and args and isinstance(args[0], syntax.Name):
            return self._comprehension(expr, target)
        elif name in ("optMap", "optFlatMap"):
            return self._opt_map(expr, target)
        lowered = tuple(self.lower(arg) for arg in (args if target is None else (target, *args)))
        return _made(ir.Call, expr, function=_as_written(name, target is not None), args=lowered)

    def _is_bound(self, name: str) -> bool:
        return name in self._locals or name in self._names

    def _has(self, expr: syntax.Call) -> ir.Expr:
        argument = expr.args[0] if len(expr.args) == 1 else None
        if not isinstance(argument, syntax.Select):
            raise EvaluationError("`has` takes a field: `has(x.f)`")
        return _made(ir.Has, expr, operand=self.lower(argument.operand), name=argument.field)

    def _within(self, variables: tuple[str, ...], *parts: syntax.Expr) -> list[ir.Expr]:
        """The trees of parts in which a macro's variables stand for something."""
        self._locals += variables
        lowered = [self.lower(part) for part in parts]
        del self._locals[len(self._locals) - len(variables) :]
        return lowered

    def _comprehension(self, expr: syntax.Call, target: syntax.Expr) -> ir.Expr:
        source, count = self.lower(target), self._variable_count(expr)
        variables = tuple(arg.name for arg in expr.args[:count] if isinstance(arg, syntax.Name))
        *tests, body = self._within(variables, *expr.args[count:])
        fold, test = _FOLDS[expr.function], tests[0] if tests else None
        return _made(ir.Comprehension, expr, fold=fold, source=source, variables=variables, condition=test, body=body)

    def _variable_count(self, expr: syntax.Call) -> int:
        """1 or 2: `l.all(x, e)`, `m.all(k, v, e)`, `m.transformList(k, v, [test,] e)`."""
        name, args = expr.function, expr.args
        for count, allowed in ((1, _ONE_VARIABLE), (2, _TWO_VARIABLES)):
            sizes = {count + 1, count + 2} if name in _WITH_CONDITION else {count + 1}
            named = [arg.name for arg in args[:count] if isinstance(arg, syntax.Name)]
            if name in allowed and len(args) in sizes and len(set(named)) == count:
                return count
        raise EvaluationError(f"`{name}` takes a new name and an expression: `.{name}(x, …)`")

    def _bind(self, expr: syntax.Call) -> ir.Expr:
        """`cel.bind(x, value, body)`: the body over a list of the one value, and of that the one item."""
        if len(expr.args) != 3 or not isinstance(expr.args[0], syntax.Name):
            raise EvaluationError("`cel.bind` takes a new name, its value and an expression")
        variable, value = expr.args[0].name, self.lower(expr.args[1])
        (body,) = self._within((variable,), expr.args[2])
        one = _made(ir.ListExpr, expr, items=((value, False),))
        mapped = _made(
            ir.Comprehension, expr, fold=ir.Fold.MAP, source=one, variables=(variable,), condition=None, body=body
        )
        return _made(ir.Index, expr, operand=mapped, key=_made(ir.Const, expr, value=0))

    def _opt_map(self, expr: syntax.Call, target: syntax.Expr) -> ir.Expr:
        if len(expr.args) != 2 or not isinstance(expr.args[0], syntax.Name):
            raise EvaluationError(f"`{expr.function}` takes a new name and an expression")
        operand, variable = self.lower(target), expr.args[0].name
        (body,) = self._within((variable,), expr.args[1])
        flat = expr.function == "optFlatMap"
        return _made(ir.OptMap, expr, operand=operand, variable=variable, body=body, flat=flat)


def _made(kind: type[_Made], expr: syntax.Expr, **fields: Any) -> _Made:
    """A node of type dyn, where the expression stands."""
    return kind(type=DYN, span=expr.span, **fields)


def _value(expr: _Number, sign: int) -> object:
    if isinstance(expr, syntax.DurationLiteral):
        return Duration(_bounded(sign * whole(Fraction(expr.number) * NANOSECONDS[expr.unit])))
    if isinstance(expr, syntax.QuantityLiteral):
        if expr.suffix == "m":
            return Cpu(_bounded(sign * whole(Fraction(expr.number))))
        return Memory(_bounded(sign * whole(Fraction(expr.number) * (BINARY.get(expr.suffix) or DECIMAL[expr.suffix]))))
    if isinstance(expr.value, str | bool) or expr.value is None:
        return expr.value
    return sign * expr.value if isinstance(expr.value, float) else _bounded(sign * expr.value)


def _bounded(value: int) -> int:
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise EvaluationError("the number is too large: 64 bits hold it no more")


def _as_written(name: str, method: bool) -> str:
    """The function's name, or one that no function has where it is written in the other style."""
    row = FUNCTIONS.get(name)
    wrong = Style.GLOBAL if method else Style.METHOD
    if row is not None and row.style in (wrong, Style.OPERATOR):
        return f".{name}" if method else f"{name}()"
    return name


def _dotted(expr: syntax.Expr) -> str | None:
    """`a.b.c` as one name, None for what is not."""
    if isinstance(expr, syntax.Name):
        return expr.name
    if isinstance(expr, syntax.Select) and not expr.optional:
        before = _dotted(expr.operand)
        return f"{before}.{expr.field}" if before is not None else None
    return None
