"""Trees as tests want to see them: as short s-expressions, without spans, and printed back as text."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from policyengine.language import syntax
from policyengine.language.syntax import Expr

LEVELS = {"?:": 0, "||": 1, "&&": 2, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
LEVELS |= dict.fromkeys(["==", "!=", "<", "<=", ">", ">="], 3)
UNARY, MEMBER = 6, 7


def bare(value: Any) -> Any:
    """A tree as nested tuples, without any span."""
    if isinstance(value, Struct):
        names = (name for name in value.__struct_fields__ if not name.endswith("span"))
        parts = ((name, bare(getattr(value, name))) for name in names)
        return (type(value).__name__, *parts)
    if isinstance(value, tuple | list):
        return tuple(bare(part) for part in value)
    return (type(value).__name__, repr(value))


def brief(node: Expr) -> str:
    """An expression as an s-expression: `(+ a (* 2 b))`."""
    match node:
        case syntax.Literal(value=(str() as value)) | syntax.BytesLiteral(value=value):
            return repr(value)
        case syntax.QuantityLiteral() | syntax.DurationLiteral():
            return f"<{printed(node)}>"
        case syntax.Select(operand=operand, field=field, optional=optional):
            return f"({'.?' if optional else '.'} {brief(operand)} {field})"
        case syntax.Index(operand=operand, key=key, optional=optional):
            return f"({'[?]' if optional else '[]'} {brief(operand)} {brief(key)})"
        case syntax.Call(target=target, function=function, args=args):
            parts = [f"{function}()" if target is None else f".{function}()"]
            return f"({' '.join(parts + ([brief(target)] if target else []) + [brief(arg) for arg in args])})"
        case syntax.Unary(op=op, operand=operand):
            return f"({op} {brief(operand)})"
        case syntax.Binary(op=op, left=left, right=right):
            return f"({op} {brief(left)} {brief(right)})"
        case syntax.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"(? {brief(condition)} {brief(then)} {brief(otherwise)})"
        case syntax.ListLiteral(items=items):
            return "[" + " ".join(f"{'?' * item.optional}{brief(item.value)}" for item in items) + "]"
        case syntax.MapLiteral(entries=entries):
            pairs = (f"{'?' * e.optional}{brief(e.key)}: {brief(e.value)}" for e in entries)
            return "{" + ", ".join(pairs) + "}"
        case _:
            return printed(node)


def printed(node: Expr, level: int = 0) -> str:
    """An expression as text, with brackets only where precedence asks for them."""
    text, own = _printed(node)
    return text if own >= level else f"({text})"


def _printed(node: Expr) -> tuple[str, int]:
    match node:
        case syntax.Literal(value=value):
            return _literal(value), MEMBER
        case syntax.BytesLiteral(value=data):
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in data) + '"', MEMBER
        case syntax.UintLiteral(value=number):
            return f"{number}u", MEMBER
        case syntax.QuantityLiteral(number=number, suffix=suffix) | syntax.DurationLiteral(number=number, unit=suffix):
            return f"{number}{suffix}", MEMBER
        case syntax.Name(name=name, absolute=absolute):
            return f"{'.' * absolute}{name}", MEMBER
        case syntax.Select(operand=operand, field=field, optional=optional):
            field = field if field.isidentifier() else f"`{field}`"
            return f"{printed(operand, MEMBER)}.{'?' * optional}{field}", MEMBER
        case syntax.Index(operand=operand, key=key, optional=optional):
            return f"{printed(operand, MEMBER)}[{'?' * optional}{printed(key)}]", MEMBER
        case syntax.Call(target=target, function=function, args=args):
            prefix = f"{printed(target, MEMBER)}." if target else ""
            return f"{prefix}{function}({', '.join(map(printed, args))})", MEMBER
        case syntax.Unary(op=op, operand=operand):
            return f"{op}{printed(operand, UNARY)}", UNARY
        case syntax.Binary(op=op, left=left, right=right):
            own = LEVELS[op]
            return f"{printed(left, own)} {op} {printed(right, own + 1)}", own
        case syntax.Conditional(condition=condition, then=then, otherwise=otherwise):
            return f"{printed(condition, 1)} ? {printed(then, 1)} : {printed(otherwise)}", 0
        case syntax.ListLiteral(items=items):
            return "[" + ", ".join(f"{'?' * i.optional}{printed(i.value)}" for i in items) + "]", MEMBER
        case syntax.MapLiteral(entries=entries):
            pairs = (f"{'?' * e.optional}{printed(e.key)}: {printed(e.value)}" for e in entries)
            return "{" + ", ".join(pairs) + "}", MEMBER
    raise AssertionError(node)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in value) + '"'
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text or "e" in text else f"{text}.0"
    return "null" if value is None else str(value).lower()
