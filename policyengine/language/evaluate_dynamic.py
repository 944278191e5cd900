"""Expressions without checked types: syntax to a tree of type dyn, for `policyengine.evaluate`.

Only what CEL's own parser would refuse is refused here; everything else is decided by values.
"""

from __future__ import annotations

from collections.abc import Set
from fractions import Fraction

from policyengine.language import ir, syntax
from policyengine.language.checking.literal_types import BINARY, DECIMAL
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.functions.type_conversions import DIMENSIONS
from policyengine.language.syntax import Span
from policyengine.language.types import DYN
from policyengine.language.values import (
    INT64_MAX,
    INT64_MIN,
    NANOSECONDS,
    Cpu,
    Duration,
    EvaluationError,
    Memory,
)

_FOLDS = {
    "all": ir.Fold.ALL,
    "exists": ir.Fold.EXISTS,
    "exists_one": ir.Fold.EXISTS_ONE,
    "existsOne": ir.Fold.EXISTS_ONE,
    "filter": ir.Fold.FILTER,
    "map": ir.Fold.MAP,
    "transformList": ir.Fold.TRANSFORM_LIST,
    "transformMap": ir.Fold.TRANSFORM_MAP,
}
_ONE_VARIABLE = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_TWO_VARIABLES = frozenset({"all", "exists", "exists_one", "existsOne", "transformList", "transformMap"})
_WITH_CONDITION = frozenset({"map", "transformList", "transformMap"})


class DynamicLowering:
    """Makes dynamic trees. `text`: of the expressions; `names`: the free variables, dotted ones (`a.b.c`) included."""

    def __init__(self, text: str, names: Set[str]) -> None:
        self._text = text
        self._names = names
        self._locals: list[str] = []

    def lower(self, expr: syntax.Expr) -> ir.Expr:
        """The tree of an expression.

        Raises:
            EvaluationError: it holds what CEL on plain values has not (bytes, uint, messages), or a misused macro.
        """
        match expr:
            case syntax.Literal() | syntax.QuantityLiteral() | syntax.DurationLiteral():
                return _constant(expr, negative=False)
            case syntax.Name():
                return self._name(expr)
            case syntax.Select():
                return self._select(expr)
            case syntax.Index():
                operand, key = self.lower(expr.operand), self.lower(expr.key)
                return ir.Index(type=DYN, span=expr.span, operand=operand, key=key, optional=expr.optional)
            case syntax.Call():
                return self._call(expr)
            case syntax.Unary() | syntax.Binary():
                return self._operator(expr)
            case syntax.Conditional():
                condition, then, otherwise = map(self.lower, (expr.condition, expr.then, expr.otherwise))
                return ir.Conditional(type=DYN, span=expr.span, condition=condition, then=then, otherwise=otherwise)
            case syntax.ListLiteral():
                items = tuple((self.lower(item.value), item.optional) for item in expr.items)
                return ir.ListExpr(type=DYN, span=expr.span, items=items)
            case syntax.MapLiteral():
                entries = tuple((self.lower(e.key), self.lower(e.value), e.optional) for e in expr.entries)
                return ir.MapExpr(type=DYN, span=expr.span, entries=entries)
        raise EvaluationError("bytes, uint and messages are no plain values")

    # --- names ----------------------------------------------------------------------------------------

    def _name(self, expr: syntax.Name) -> ir.Expr:
        if expr.name in self._locals and not expr.absolute:
            return ir.Local(type=DYN, span=expr.span, name=expr.name)
        return ir.Field(type=DYN, span=expr.span, path=(expr.name,))

    def _select(self, expr: syntax.Select) -> ir.Expr:
        dotted = _dotted(expr)
        if dotted is not None and dotted in self._names and dotted.split(".")[0] not in self._locals:
            return ir.Field(type=DYN, span=expr.span, path=(dotted,))
        operand = self.lower(expr.operand)
        return ir.Select(type=DYN, span=expr.span, operand=operand, name=expr.field, optional=expr.optional)

    # --- operators and calls --------------------------------------------------------------------------

    def _operator(self, expr: syntax.Unary | syntax.Binary) -> ir.Expr:
        if isinstance(expr, syntax.Unary):
            if self._is_undone(expr):
                assert isinstance(expr.operand, syntax.Unary)
                return self.lower(expr.operand.operand)
            number = syntax.Literal | syntax.QuantityLiteral | syntax.DurationLiteral
            if expr.op == "-" and isinstance(expr.operand, number) and not _is_word(expr.operand):
                return _constant(expr.operand, negative=True)
            return _applied("!_" if expr.op == "!" else "-_", expr.span, self.lower(expr.operand))
        left, right = self.lower(expr.left), self.lower(expr.right)
        if expr.op == "&&" or expr.op == "||":
            op = expr.op
            parts = (*_chained(left, op), right)
            return ir.Logic(type=DYN, span=expr.span, op="&&" if op == "&&" else "||", operands=parts)
        return _applied("@in" if expr.op == "in" else f"_{expr.op}_", expr.span, left, right)

    def _is_undone(self, expr: syntax.Unary) -> bool:
        """Whether the next sign undoes this one: CEL's parsers drop two `!` or `-` in a row, unread."""
        operand = expr.operand
        return isinstance(operand, syntax.Unary) and self._text.startswith(expr.op, operand.span.start)

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
        lowered = [self.lower(arg) for arg in (args if target is None else (target, *args))]
        return _applied(_as_written(name, target is not None), expr.span, *lowered)

    def _is_bound(self, name: str) -> bool:
        return name in self._locals or name in self._names

    # --- macros ---------------------------------------------------------------------------------------

    def _has(self, expr: syntax.Call) -> ir.Expr:
        argument = expr.args[0] if len(expr.args) == 1 else None
        if not isinstance(argument, syntax.Select):
            raise EvaluationError("`has` takes a field: `has(x.f)`")
        return ir.Has(type=DYN, span=expr.span, operand=self.lower(argument.operand), name=argument.field)

    def _comprehension(self, expr: syntax.Call, target: syntax.Expr) -> ir.Expr:
        name, source = expr.function, self.lower(target)
        count = self._variable_count(expr)
        variables = tuple(arg.name for arg in expr.args[:count] if isinstance(arg, syntax.Name))
        tail = expr.args[count:]
        self._locals += variables
        lowered = [self.lower(arg) for arg in tail]
        del self._locals[len(self._locals) - count :]
        condition = lowered[0] if len(lowered) == 2 else None
        return ir.Comprehension(
            type=DYN,
            span=expr.span,
            fold=_FOLDS[name],
            source=source,
            variables=variables,
            condition=condition,
            body=lowered[-1],
        )

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
        self._locals.append(variable)
        body = self.lower(expr.args[2])
        self._locals.pop()
        one = ir.ListExpr(type=DYN, span=expr.span, items=((value, False),))
        mapped = ir.Comprehension(
            type=DYN,
            span=expr.span,
            fold=ir.Fold.MAP,
            source=one,
            variables=(variable,),
            condition=None,
            body=body,
        )
        return ir.Index(type=DYN, span=expr.span, operand=mapped, key=ir.Const(type=DYN, span=expr.span, value=0))

    def _opt_map(self, expr: syntax.Call, target: syntax.Expr) -> ir.Expr:
        if len(expr.args) != 2 or not isinstance(expr.args[0], syntax.Name):
            raise EvaluationError(f"`{expr.function}` takes a new name and an expression")
        operand, variable = self.lower(target), expr.args[0].name
        self._locals.append(variable)
        body = self.lower(expr.args[1])
        self._locals.pop()
        flat = expr.function == "optFlatMap"
        return ir.OptMap(type=DYN, span=expr.span, operand=operand, variable=variable, body=body, flat=flat)


def _constant(expr: syntax.Literal | syntax.QuantityLiteral | syntax.DurationLiteral, *, negative: bool) -> ir.Const:
    return ir.Const(type=DYN, span=expr.span, value=_value(expr, -1 if negative else 1))


def _value(expr: syntax.Literal | syntax.QuantityLiteral | syntax.DurationLiteral, sign: int) -> object:
    if isinstance(expr, syntax.DurationLiteral):
        return Duration(_bounded(sign * int(Fraction(expr.number) * NANOSECONDS[expr.unit])))
    if isinstance(expr, syntax.QuantityLiteral):
        if expr.suffix == "m":
            return Cpu(_bounded(sign * int(Fraction(expr.number))))
        return Memory(_bounded(sign * int(Fraction(expr.number) * (BINARY.get(expr.suffix) or DECIMAL[expr.suffix]))))
    if isinstance(expr.value, str | bool) or expr.value is None:
        return expr.value
    return sign * expr.value if isinstance(expr.value, float) else _bounded(sign * expr.value)


def _bounded(value: int) -> int:
    if INT64_MIN <= value <= INT64_MAX:
        return value
    raise EvaluationError("the number is too large: 64 bits hold it no more")


def _is_word(expr: syntax.Expr) -> bool:
    return isinstance(expr, syntax.Literal) and (isinstance(expr.value, str | bool) or expr.value is None)


def _applied(name: str, span: Span, *args: ir.Expr) -> ir.Call:
    return ir.Call(type=DYN, span=span, function=name, args=args)


def _chained(left: ir.Expr, op: str) -> tuple[ir.Expr, ...]:
    return left.operands if isinstance(left, ir.Logic) and left.op == op else (left,)


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
