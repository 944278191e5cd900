"""The checker of expressions: syntax in, typed tree out, every finding reported.

Types flow upwards; only literals are steered from above, by what they meet. An expression that was reported has
the type ERROR, and nothing that depends on it is reported again.
"""

from __future__ import annotations

from typing import Literal as OneOf

from policyengine.language import ir, syntax
from policyengine.language.checking.calls import check_call, resolve
from policyengine.language.checking.check_codes import NO_OVERLOAD, NOT_IN_POLICIES, WRONG_TYPE
from policyengine.language.checking.cluster_aggregates import check_use
from policyengine.language.checking.context import Context, Names, Report, error_at, wrapped
from policyengine.language.checking.field_access import check_has, check_index, check_name, check_select
from policyengine.language.checking.literal_types import converted, empty, is_bare, is_flexible
from policyengine.language.checking.macros import check_macro, is_macro
from policyengine.language.functions import FUNCTIONS
from policyengine.language.ir.ir_walk import extent, is_error
from policyengine.language.types import BOOL, DOUBLE, INT, Kind, Type, list_of, map_of

_LEFT_OUT = {
    syntax.BytesLiteral: "bytes",
    syntax.UintLiteral: "uint",
    syntax.MessageLiteral: "messages",
}
_KEYS = frozenset({Kind.BOOL, Kind.INT, Kind.STRING})


class ExpressionChecker:
    """Checks expressions of one policy; implements `context.Checks`."""

    def __init__(self, report: Report, names: Names) -> None:
        self.report = report
        self.names = names

    def on(self, report: Report, names: Names) -> ExpressionChecker:
        """A checker that reports elsewhere, and knows other names."""
        return ExpressionChecker(report, names)

    def check(self, expr: syntax.Expr, context: Context, expected: Type | None = None) -> ir.Expr:
        """The typed tree of an expression. `expected` steers literals only; the caller compares types."""
        checked = check_use(self, self._checked(expr, context, expected))
        if checked.type.kind is not Kind.ERROR:
            self.report.types.setdefault(expr.span, checked.type)
        return checked

    def _checked(self, expr: syntax.Expr, context: Context, expected: Type | None) -> ir.Expr:
        match expr:  # the most frequent first
            case syntax.Literal():
                if expr.value is not None:
                    return converted(self.report, expr, expected)
                message = "a policy has no null; what may be absent is an optional"
                return self.report.failed(NOT_IN_POLICIES, message, expr.span)
            case syntax.Binary():
                return self._binary(expr, context, expected)
            case syntax.Name():
                return check_name(self, expr, context)
            case syntax.Select():
                return check_select(self, expr, context)
            case syntax.QuantityLiteral() | syntax.DurationLiteral():
                return converted(self.report, expr, expected)
            case syntax.Index():
                return check_index(self, expr, context)
            case syntax.Call():
                return self._call(expr, context, expected)
            case syntax.Unary():
                return self._unary(expr, context, expected)
            case syntax.Conditional():
                return self._conditional(expr, context, expected)
            case syntax.ListLiteral():
                return self._list(expr, context, expected)
            case syntax.MapLiteral():
                return self._map(expr, context, expected)
            case _:
                message = f"a policy has no {_LEFT_OUT[type(expr)]}"
                return self.report.failed(NOT_IN_POLICIES, message, expr.span)

    def _call(self, expr: syntax.Call, context: Context, expected: Type | None) -> ir.Expr:
        if expr.function == "has" and expr.target is None:
            return check_has(self, expr, context)
        if is_macro(expr):
            return check_macro(self, expr, context)
        return check_call(self, expr, context, expected)

    def _unary(self, expr: syntax.Unary, context: Context, expected: Type | None) -> ir.Expr:
        operand = expr.operand
        if expr.op == "-" and isinstance(operand, syntax.QuantityLiteral | syntax.DurationLiteral):
            return converted(self.report, operand, expected, negative=True)
        if expr.op == "-" and isinstance(operand, syntax.Literal) and is_bare(operand):
            return converted(self.report, operand, expected, negative=True)
        function = FUNCTIONS["!_" if expr.op == "!" else "-_"]
        return resolve(self, function, (operand,), expr.span, context, expected)

    def _binary(self, expr: syntax.Binary, context: Context, expected: Type | None) -> ir.Expr:
        if expr.op == "&&" or expr.op == "||":
            return self._logic(expr, context)
        function = FUNCTIONS["@in" if expr.op == "in" else f"_{expr.op}_"]
        passed_on = expected if expr.op in "+-*/" else None
        return resolve(self, function, (expr.left, expr.right), expr.span, context, passed_on)

    def _logic(self, expr: syntax.Binary, context: Context) -> ir.Expr:
        """A chain of one operator: each part may rely on what the parts before it established."""
        op: OneOf["&&", "||"] = "&&" if expr.op == "&&" else "||"
        operands: list[ir.Expr] = []
        for part in _chain(expr):
            operand = self.truth(part, context, f"`{op}` takes bools")
            operands.append(operand)
            context = context.behind(operand, op == "&&", self.names)
        if is_error(*operands):
            return error_at(expr.span)
        flat = [inner for part in operands for inner in _flattened(part, op)]
        return ir.Logic(type=BOOL, span=expr.span, **extent(*flat), op=op, operands=tuple(flat))

    def truth(self, expr: syntax.Expr, context: Context, why: str) -> ir.Expr:
        """An expression that has to be a bool."""
        checked = self.check(expr, context)
        if is_error(checked) or checked.type == BOOL:
            return checked
        return self.report.failed(WRONG_TYPE, f"{why}, this is {checked.type}", expr.span)

    def _conditional(self, expr: syntax.Conditional, context: Context, expected: Type | None) -> ir.Expr:
        condition = self.truth(expr.condition, context, "the condition of `?:` is a bool")
        known = [context.behind(condition, truth, self.names) for truth in (True, False)]
        branches = [(expr.then, known[0]), (expr.otherwise, known[1])]
        first = 0 if _weight(expr.then) >= _weight(expr.otherwise) else 1
        done: dict[int, ir.Expr] = {}
        done[first] = self.check(*branches[first], expected)
        done[1 - first] = self.check(*branches[1 - first], expected if is_error(done[first]) else done[first].type)
        then, otherwise = done[0], done[1]
        if is_error(condition, then, otherwise):
            return error_at(expr.span)
        if then.type != otherwise.type:
            return self._differ(expr, then, otherwise)
        return ir.Conditional(
            type=then.type,
            span=expr.span,
            **extent(condition, then, otherwise),
            condition=condition,
            then=then,
            otherwise=otherwise,
        )

    def _differ(self, expr: syntax.Conditional, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
        message = f"the branches of `?:` differ: {then.type} and {otherwise.type}"
        fix = None
        if {then.type, otherwise.type} == {INT, DOUBLE}:
            number = then if then.type == INT else otherwise
            fix = wrapped(number.span, "double(", ")", "write `double(…)`")
        return self.report.failed(NO_OVERLOAD, message, expr.span, fix)

    def _list(self, expr: syntax.ListLiteral, context: Context, expected: Type | None) -> ir.Expr:
        if not expr.items:
            return empty(self.report, expr, expected)
        wanted = expected.args[0] if expected is not None and expected.kind is Kind.LIST else None
        order = sorted(range(len(expr.items)), key=lambda at: -_weight(expr.items[at].value))
        done: dict[int, ir.Expr] = {}
        for at in order:
            item = expr.items[at]
            done[at] = checked = self.check(item.value, context, wanted)
            if not is_error(checked) and not item.optional and not is_flexible(item.value):
                wanted = checked.type
            wanted = wanted or (checked.type if not is_error(checked) and not item.optional else None)
        return self._list_of([(done[at], item.optional) for at, item in enumerate(expr.items)], expr)

    def _list_of(self, items: list[tuple[ir.Expr, bool]], expr: syntax.ListLiteral) -> ir.Expr:
        if is_error(*(item for item, _ in items)):
            return error_at(expr.span)
        types = [self._content(item, optional) for item, optional in items]
        if any(type_.kind is Kind.ERROR for type_ in types):
            return error_at(expr.span)
        for (item, _), type_ in zip(items, types, strict=True):
            if type_ != types[0]:
                message = f"the items of a list have one type: {types[0]}, and this is {type_}"
                return self.report.failed(NO_OVERLOAD, message, item.span)
        return ir.ListExpr(
            type=list_of(types[0]), span=expr.span, **extent(*(item for item, _ in items)), items=tuple(items)
        )

    def _content(self, item: ir.Expr, optional: bool) -> Type:
        """The type of an item; of `?item` the content's."""
        if not optional:
            return item.type
        if item.type.kind is Kind.OPTIONAL:
            return item.type.args[0]
        return self.report.failed(WRONG_TYPE, f"`?` is for optionals, this is {item.type}", item.span).type

    def _map(self, expr: syntax.MapLiteral, context: Context, expected: Type | None) -> ir.Expr:
        if not expr.entries:
            return empty(self.report, expr, expected)
        wanted = expected.args if expected is not None and expected.kind is Kind.MAP else (None, None)
        entries = [
            (self.check(entry.key, context, wanted[0]), self.check(entry.value, context, wanted[1]), entry.optional)
            for entry in expr.entries
        ]
        if any(is_error(key, value) for key, value, _ in entries):
            return error_at(expr.span)
        key_type, value_type = entries[0][0].type, self._content(entries[0][1], entries[0][2])
        for key, value, optional in entries:
            if key.type.kind not in _KEYS or key.type != key_type:
                message = f"the keys of a map are all int, string or bool; this is {key.type}"
                return self.report.failed(NO_OVERLOAD, message, key.span)
            if self._content(value, optional) != value_type:
                message = f"the values of a map have one type: {value_type}, and this is {value.type}"
                return self.report.failed(NO_OVERLOAD, message, value.span)
        parts = [part for key, value, _ in entries for part in (key, value)]
        return ir.MapExpr(type=map_of(key_type, value_type), span=expr.span, **extent(*parts), entries=tuple(entries))


def _chain(expr: syntax.Binary) -> list[syntax.Expr]:
    """The parts of `a && b && c`, from the left."""
    parts: list[syntax.Expr] = []
    left: syntax.Expr = expr
    while isinstance(left, syntax.Binary) and left.op == expr.op:
        parts.append(left.right)
        left = left.left
    return [left, *reversed(parts)]


def _flattened(part: ir.Expr, op: str) -> tuple[ir.Expr, ...]:
    return part.operands if isinstance(part, ir.Logic) and part.op == op else (part,)


def _weight(expr: syntax.Expr) -> int:
    """How much an expression decides what a literal beside it is: an expression, a suffix, a double, an int."""
    if not is_flexible(expr):
        return 3
    return 1 if is_bare(expr) else 2
