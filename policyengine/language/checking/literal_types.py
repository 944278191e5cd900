"""Literals: which types one may take, and what it is worth in the type it meets.

A literal is flexible: `4` is an int, a double or four cores, `1G` bytes or a billion cores, as its neighbours
decide. So is what only passes literals on: `-4`, `c ? 1 : 2`, `[1, 2]`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeGuard

from policyengine.language import ir, syntax
from policyengine.language.checking.findings import Report
from policyengine.language.checking.foreign_words import key_text
from policyengine.language.diagnostics import listed, replacing
from policyengine.language.schema import QOS_CLASSES
from policyengine.language.syntax import Span
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    QOS,
    STORAGE,
    STRING,
    Kind,
    Type,
    list_of,
    map_of,
)
from policyengine.language.values import INT64_MAX, INT64_MIN, NANOSECONDS
from policyengine.suggestion import closest

DECIMAL: dict[str, Fraction | int] = {"m": Fraction(1, 1000), **{s: 1000**n for n, s in enumerate("kMGTP", 1)}}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}

Number = syntax.Literal | syntax.QuantityLiteral | syntax.DurationLiteral


def is_flexible(expr: syntax.Expr) -> bool:
    """Whether its type may follow from what it meets."""
    match expr:
        case syntax.Literal():
            return expr.value is not None
        case syntax.Name() | syntax.Select() | syntax.Binary():
            return False
        case syntax.QuantityLiteral() | syntax.DurationLiteral():
            return True
        case syntax.Unary(op="-"):
            return is_number(expr.operand) or is_bare(expr.operand)
        case syntax.Conditional():
            return is_flexible(expr.then) and is_flexible(expr.otherwise)
        case syntax.ListLiteral():
            return all(is_flexible(item.value) and not item.optional for item in expr.items)
        case syntax.MapLiteral():
            return not expr.entries
        case syntax.Call(function="none", target=syntax.Name(name="optional")):
            return True
        case _:
            return False


def is_number(expr: syntax.Expr) -> TypeGuard[Number]:
    """Whether it is a number without a sign, perhaps with a suffix."""
    if isinstance(expr, syntax.Literal):
        return type(expr.value) in (int, float)
    return isinstance(expr, syntax.QuantityLiteral | syntax.DurationLiteral)


def is_bare(expr: syntax.Expr) -> bool:
    """Whether it is a number without a suffix, perhaps with a sign."""
    if isinstance(expr, syntax.Unary) and expr.op == "-":
        return is_bare(expr.operand)
    return isinstance(expr, syntax.Literal) and is_number(expr)


def signed_number(expr: syntax.Expr) -> tuple[Number, bool]:
    """The number in `-4` or `-(-4)`, and whether it is negative."""
    is_negative = False
    while isinstance(expr, syntax.Unary):
        expr, is_negative = expr.operand, not is_negative
    assert is_number(expr)
    return expr, is_negative


def natural(expr: syntax.Expr, expected: Type | None = None) -> Type | None:
    """The type a flexible expression has where nothing else decides; None where it then has none."""
    match expr:
        case syntax.Literal():
            return _NATURAL[type(expr.value)]
        case syntax.DurationLiteral():
            return DURATION
        case syntax.QuantityLiteral():
            return _dimension(expr.suffix, expected)
        case syntax.Unary():
            return natural(expr.operand, expected)
        case syntax.Conditional():
            return natural(expr.then, expected) or natural(expr.otherwise, expected)
        case syntax.ListLiteral(items=items) if items:
            inner = expected.args[0] if expected is not None and expected.kind is Kind.LIST else None
            types = {natural(item.value, inner) for item in items}
            only = types.pop() if len(types) == 1 else None
            return list_of(only) if only else None
        case _:
            return expected


def _dimension(suffix: str, expected: Type | None) -> Type | None:
    """`m` is cpu, a binary suffix bytes; a decimal one what is expected."""
    if suffix == "m":
        return CPU
    if suffix in BINARY:
        return STORAGE if expected == STORAGE else MEMORY
    return expected if expected is not None and expected.is_quantity else None


_NATURAL: dict[type, Type] = {int: INT, float: DOUBLE, str: STRING, bool: BOOL}


def fits(expr: syntax.Expr, type_: Type) -> bool:
    """Whether a flexible expression may take the type: by what it is, whatever its value; `converted` says no."""
    match expr:
        case syntax.Literal(value=str()):
            return type_ in (STRING, QOS)
        case syntax.Literal(value=bool()):
            return type_ == BOOL
        case syntax.Literal(value=int()):
            return type_.is_number or type_.is_quantity or type_ == DURATION
        case syntax.Literal(value=float()):
            return type_ in (DOUBLE, DURATION) or type_.is_quantity
        case syntax.DurationLiteral():
            return type_ == DURATION
        case syntax.QuantityLiteral():
            return type_.is_quantity or type_ in (INT, DURATION)
        case syntax.Unary():
            return fits(expr.operand, type_)
        case syntax.Conditional():
            return fits(expr.then, type_) and fits(expr.otherwise, type_)
        case syntax.ListLiteral():
            return type_.kind is Kind.LIST and all(fits(item.value, type_.args[0]) for item in expr.items)
        case syntax.MapLiteral():
            return type_.kind is Kind.MAP
        case _:
            return type_.kind is Kind.OPTIONAL


def converted(report: Report, expr: Number, expected: Type | None, negative: bool = False) -> ir.Expr:
    """A literal in the type it meets, if it fits that, else in its own; reports what is wrong with it."""
    span = expr.span
    if isinstance(expr, syntax.DurationLiteral):
        return _integer(report, whole(_number(expr.number) * NANOSECONDS[expr.unit], negative), DURATION, span)
    type_ = expected if expected is not None and fits(expr, expected) else natural(expr)
    if type_ is None:
        assert isinstance(expr, syntax.QuantityLiteral)
        text = f"`{expr.number}{expr.suffix}` may be bytes or cores; nothing beside it decides"
        return report.error("PE1015", text, span)
    if isinstance(expr, syntax.QuantityLiteral):
        return _quantity(report, expr, type_, negative)
    return _literal(report, expr, type_, negative)


def _literal(report: Report, expr: syntax.Literal, type_: Type, negative: bool) -> ir.Expr:
    value, span = expr.value, expr.span
    if isinstance(value, str):
        return _qos(report, value, span) if type_ == QOS else ir.Const(type=STRING, span=span, value=value)
    if isinstance(value, bool) or value is None:
        return ir.Const(type=BOOL, span=span, value=value)
    if type_ == DURATION:
        text = f"a duration needs a unit: `{value}s` is {value} second{'s' * (value != 1)}"
        return report.error("PE1006", text, span, replacing(span, f"{value}s"))
    if type_ == DOUBLE:
        return ir.Const(type=DOUBLE, span=span, value=-float(value) if negative else float(value))
    grains = (Fraction(value) if isinstance(value, float) else value) * (1000 if type_ == CPU else 1)
    return _integer(report, whole(grains, negative), type_, span)


def _quantity(report: Report, expr: syntax.QuantityLiteral, type_: Type, negative: bool) -> ir.Expr:
    """A suffixed number; a fraction of the grain is rounded away from zero, as Kubernetes does."""
    written, span = f"{expr.number}{expr.suffix}", expr.span
    if type_ == DURATION:
        if expr.suffix != "m":
            return report.error("PE1006", f"`{written}` is not a duration; write `90s` or `5min`", span)
        text = f"`{written}` is {expr.number} milli, not minutes; write `{expr.number}min`"
        return report.error("PE1006", text, span, replacing(span, f"{expr.number}min"))
    if type_ == INT:
        return _no_count(report, expr)
    if type_ == CPU and expr.suffix in BINARY:
        return report.error("PE1006", f"`{written}` is an amount of memory, not of cpu", span)
    if type_ != CPU and expr.suffix == "m":
        text = f"`{written}` is {expr.number} milli: too little for {type_}; write `M` or `Mi`"
        fix = replacing(span, f"{expr.number}Mi") if type_.is_quantity else None
        return report.error("PE1006", text, span, fix)
    factor = BINARY.get(expr.suffix) or DECIMAL[expr.suffix]
    grains = _number(expr.number) * factor * (1000 if type_ == CPU else 1)
    return _integer(report, whole(grains, negative), type_, span)


def _no_count(report: Report, expr: syntax.QuantityLiteral) -> ir.Expr:
    """Reports an amount where a count stands: `node.podCount > 3Gi`."""
    written = f"`{expr.number}{expr.suffix}`"
    if expr.suffix == "m":
        text = f"{written} is {expr.number} milli, an amount of cpu; an int is a whole number, and minutes are `min`"
        return report.error("PE1006", text, expr.span)
    amount = _number(expr.number) * (BINARY.get(expr.suffix) or DECIMAL[expr.suffix])
    if expr.suffix in BINARY:
        text = f"{written} is an amount of memory, and an int has no suffix: compare an amount, or write a whole number"
        return report.error("PE1006", text, expr.span)
    text = f"{written} is an amount, and an int has no suffix: write `{whole(amount)}`"
    return report.error("PE1006", text, expr.span, replacing(expr.span, str(whole(amount)), safe=True))


def _qos(report: Report, value: str, span: Span) -> ir.Expr:
    if value in QOS_CLASSES:
        return ir.Const(type=QOS, span=span, value=QOS_CLASSES.index(value))
    close = closest(value, QOS_CLASSES)
    text = f"`{value}` is no quality of service; there are {listed(QOS_CLASSES)}"
    return report.error("PE1006", text, span, replacing(span, f'"{close}"') if close else None)


def _number(text: str) -> Fraction:
    return Fraction(text.removesuffix("."))


def whole(value: Fraction | int, negative: bool = False) -> int:
    """A size in whole grains, as Kubernetes rounds it: up; or the negative of that."""
    size = -(-value.numerator // value.denominator)
    return -size if negative else size


def _integer(report: Report, value: int, type_: Type, span: Span) -> ir.Expr:
    if INT64_MIN <= value <= INT64_MAX:
        return ir.Const(type=type_, span=span, value=value)
    return report.error("PE1006", f"the number is too large for {type_}: 64 bits hold it no more", span)


def empty(report: Report, expr: syntax.ListLiteral | syntax.MapLiteral, expected: Type | None) -> ir.Expr:
    """`[]` or `{}`, whose type only its place can tell."""
    kind, text = (Kind.LIST, "[]") if isinstance(expr, syntax.ListLiteral) else (Kind.MAP, "{}")
    if expected is None or expected.kind is not kind:
        return report.error("PE1015", f"nothing here says what `{text}` holds", expr.span)
    if kind is Kind.LIST:
        return ir.ListExpr(type=expected, span=expr.span, items=())
    return ir.MapExpr(type=map_of(*expected.args), span=expr.span, entries=())


class NotPlainError(Exception):
    """An expression that is no literal, or no key."""

    def __init__(self, expr: syntax.Expr) -> None:
        super().__init__()
        self.expr = expr

    def reported(self, report: Report, code: str, message: str) -> None:
        """Reports it; where it was plainly meant to be text, with the quotes that are missing."""
        text = self.expr.name if isinstance(self.expr, syntax.Name) else key_text(self.expr)
        if text is None:
            report.error(code, message, self.expr.span)
        else:
            instead = f'"{text}"'
            fix = replacing(self.expr.span, instead, safe=True)
            report.error(code, f"text stands in quotes: `{instead}`", self.expr.span, fix)


class TwiceError(NotPlainError):
    """A key that a map has already."""

    def __init__(self, entry: syntax.MapEntry) -> None:
        super().__init__(entry.key)
        self.key = key_of(entry)

    def reported(self, report: Report, code: str, message: str) -> None:
        """Reports it, with the key in the place of `message`."""
        report.error(code, f"`{self.key}` is given twice", self.expr.span)


def plain(expr: syntax.Expr) -> object:
    """A literal as the JSON value it is; a bare name before `:` is a key, a quantity its text."""
    match expr:
        case syntax.Literal():
            return expr.value
        case syntax.QuantityLiteral():
            return f"{expr.number}{expr.suffix}"
        case syntax.DurationLiteral():
            return f"{expr.number}{expr.unit}"
        case syntax.Unary(op="-", operand=syntax.Literal(value=int() | float() as number)) if number is not True:
            return -number
        case syntax.ListLiteral():
            return [plain(item.value) for item in expr.items]
        case syntax.MapLiteral():
            return {key: plain(entry.value) for key, entry in entries_of(expr).items()}
        case _:
            raise NotPlainError(expr)


def entries_of(expr: syntax.MapLiteral) -> dict[str, syntax.MapEntry]:
    """The entries by their keys. Raises `NotPlainError`, also for a key that is there twice."""
    found: dict[str, syntax.MapEntry] = {}
    for entry in expr.entries:
        if found.setdefault(key_of(entry), entry) is not entry:
            raise TwiceError(entry)
    return found


def key_of(entry: syntax.MapEntry) -> str:
    """The key of an entry where a bare name is one."""
    if isinstance(entry.key, syntax.Name):
        return entry.key.name
    if isinstance(entry.key, syntax.Literal) and isinstance(entry.key.value, str):
        return entry.key.value
    raise NotPlainError(entry.key)
