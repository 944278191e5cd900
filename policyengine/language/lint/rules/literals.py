"""Literals: patterns, texts, amounts and names of nodes."""

from __future__ import annotations

import re

from policyengine.language import ir, syntax
from policyengine.language.diagnostics import replacing
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule
from policyengine.language.syntax import Span
from policyengine.language.types import Kind

_ANCHORED = re.compile(r"(\(\?[a-zA-Z]+\))?\(*(\^|\\A|\.\*)|.*(\$|\\z|\.\*)\)*$", re.DOTALL)
_PLAIN = re.compile(r"[\w /:@=,;%-]+")


@rule("PE3508", Severity.WARNING)
def unanchored_pattern(subject: Subject) -> Findings:
    """a pattern that is not anchored

    `matches` looks for the pattern anywhere in the text: `"prod"` matches `nonprod` too. Say where it begins and ends,
    `"^prod-[0-9]+$"`; for a part of the text that is meant, use `contains`, `startsWith` or `endsWith`, which are
    faster. `--fix` does so for patterns without a special character.
    """
    for call in subject.nodes_of(syntax.Call):
        if call.function != "matches" or not call.args:
            continue
        pattern = call.args[-1]
        if not isinstance(pattern, syntax.Literal) or not isinstance(pattern.value, str):
            continue
        if not _ANCHORED.match(pattern.value):
            plain = call.target is not None and _PLAIN.fullmatch(pattern.value)
            fix = Fix("write `contains`", (Edit(call.function_span, "contains"),), safe=True) if plain else None
            yield Finding("the pattern may match anywhere in the text: anchor it by `^` and `$`", pattern.span, fix)


_CASES = {"lowerAscii": str.lower, "upperAscii": str.upper}
_COMPARES = frozenset({"_==_", "_!=_", "startsWith", "endsWith", "contains"})


@rule("PE3509", Severity.WARNING)
def never_in_case(subject: Subject) -> Findings:
    """a text compared in a case it never has

    `lowerAscii()` gives no upper case letter, so it never equals, contains or begins with a text that has one; likewise
    `upperAscii()`.

    By definition: the text is not the same in the case that the function gives.
    """
    for call in subject.parts_of(ir.Call):
        if call.function in _COMPARES:
            for folded, literal in (call.args, call.args[::-1]):
                if _never(folded, literal):
                    yield Finding("the text on the other side never has this case", literal.span)


def _never(folded: ir.Expr, literal: ir.Expr) -> bool:
    if not (isinstance(folded, ir.Call) and folded.function in _CASES and isinstance(literal, ir.Const)):
        return False
    value = literal.value
    return isinstance(value, str) and value.isascii() and _CASES[folded.function](value) != value


@rule("PE3510", Severity.WARNING)
def repeated_item(subject: Subject) -> Findings:
    """an item that a list has already

    `x in ["a", "b", "a"]` asks for `"a"` twice. The second was meant to be another one, or can go; `--fix` removes it.
    """
    for node in subject.nodes_of(syntax.Binary):
        if node.op != "in" or not isinstance(node.right, syntax.ListLiteral):
            continue
        seen: set[object] = set()
        before: syntax.ListItem | None = None
        for item in node.right.items:
            value = (type(item.value.value), item.value.value) if isinstance(item.value, syntax.Literal) else None
            if value is not None and value in seen and before is not None:
                edit = Edit(Span(before.span.end, item.span.end), "")
                yield Finding("the list has this item already", item.span, Fix("remove it", (edit,), safe=True))
            seen.add(value)
            before = item


_SUFFIXES = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("T", 10**12), ("G", 10**9), ("M", 10**6))
_MANY_CORES = 100_000
"""Millicores."""


@rule("PE3511", Severity.WARNING)
def bare_quantity(subject: Subject) -> Findings:
    """an amount without a unit

    A bare number beside memory is bytes and beside cpu is cores. `node.free.memory >= 2` asks for two bytes, and
    `node.free.cpu > 500` for five hundred cores; `1073741824` is `1Gi`, which can be read. `--fix` writes whole amounts
    of memory with their suffix.
    """
    # 0 needs no unit, and a few cores read well.
    for part in subject.parts_of(ir.Const):
        if not (part.type.is_quantity and isinstance(part.value, int) and part.value):
            continue
        text = subject.text(part.span)
        if not text.isdecimal():
            continue
        if part.type.kind is Kind.CPU:
            if part.value >= _MANY_CORES:
                hint = f"; `{text}m` is {int(text) / 1000:g}"
                yield Finding(f"`{text}` is {text} cores{hint}", part.span)
        else:
            shown = "byte" if part.value == 1 else "bytes"
            yield Finding(f"`{text}` is {text} {shown}: write the unit", part.span, _suffixed(part))


def _suffixed(const: ir.Const) -> Fix | None:
    value = const.value
    assert isinstance(value, int)
    for suffix, size in _SUFFIXES:
        if value % size == 0:
            text = f"{value // size}{suffix}"
            return replacing(const.span, text, safe=True)
    return None


_COMPARISONS = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"})
_WHOLE = frozenset({"allocatable", "capacity"})


@rule("PE3518", Severity.WARNING)
def share_as_percentage(subject: Subject) -> Findings:
    """a share compared with a percentage

    A part of what a node has, divided by the whole, is a share: 1 is all of it, `0.6` is 60 %. So
    `node.used.cpu / node.allocatable.cpu < 60` asks next to nothing. Write `0.6`, or `ratio(a, b)`, which is 0 where
    the node has nothing.
    """
    for call in subject.parts_of(ir.Call):
        if call.function not in _COMPARISONS:
            continue
        for share, literal in (call.args, call.args[::-1]):
            value = literal.value if isinstance(literal, ir.Const) else None
            if isinstance(value, int | float) and 2 <= value <= 100 and _is_share(subject, share):
                text = f"{value / 100:g}"
                message = f"the other side is a share of a node, 1 for all of it: {value:g} % is `{text}`"
                yield Finding(message, literal.span, replacing(literal.span, text))


def _is_share(subject: Subject, expr: ir.Expr) -> bool:
    """Whether an amount is divided by what a node has in all."""
    value = subject.let_value(expr.name) if isinstance(expr, ir.LetRef) else expr
    if not isinstance(value, ir.Call) or value.function != "_/_":
        return False
    whole = value.args[1]
    if isinstance(whole, ir.Index):
        whole = whole.operand
    return isinstance(whole, ir.Field) and whole.path[:1] == ("node",) and not _WHOLE.isdisjoint(whole.path)


_EQUALITY = frozenset({"_==_", "_!=_", "@in"})


@rule("PE3517", Severity.INFO)
def node_by_name(subject: Subject) -> Findings:
    """a node singled out by its name

    Nodes come and go, and their names with them; a rule that names one stops meaning anything when it is replaced,
    without a word. Give the node a label and ask for that.
    """
    for call in subject.parts_of(ir.Call):
        if call.function in _EQUALITY:
            left, right = call.args
            if (_is_name(left) and _is_literal(right)) or (_is_name(right) and _is_literal(left)):
                yield Finding("a node's name is written into the policy: use a label", call.span)


def _is_name(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Field) and expr.path == ("node", "name")


def _is_literal(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.ListExpr):
        return any(isinstance(item, ir.Const) for item, _ in expr.items)
    return isinstance(expr, ir.Const)
