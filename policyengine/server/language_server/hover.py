"""What a place in a policy is: its type, its meaning, and what is found there."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from policyengine.language import syntax
from policyengine.language.checking.literal_types import NotPlainError, key_of
from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import Span
from policyengine.language.types import Type
from policyengine.server.language_server import words
from policyengine.server.language_server.cursor import around, expressions_in, holds, member_at, variable_of
from policyengine.server.language_server.project import Reading
from policyengine.server.language_server.scopes import Symbol
from policyengine.server.language_server.words import properties_at

Page = tuple[Span, str]


def hover(reading: Reading, offset: int, findings: list[Diagnostic]) -> Hover | None:
    """What to show at an offset of a text. `findings`: of the text, at their places in it."""
    page = next(_pages(reading, offset), None)
    here = [finding for finding in findings if holds(finding.span, offset)]
    narrow = min(here, key=lambda finding: finding.span.end - finding.span.start, default=None)
    parts = [page[1]] if page is not None else []
    if narrow is not None:
        title, text = reading.toolchain.pages().get(narrow.code, ("", ""))
        parts.append(f"**{narrow.code}**: {title}\n\n{text}")
    span = page[0] if page is not None else narrow.span if narrow is not None else None
    if span is None:
        return None
    return Hover(MarkupContent(MarkupKind.Markdown, "\n\n---\n\n".join(parts)), reading.range(span))


def _pages(reading: Reading, offset: int) -> Iterator[Page]:
    """What can be said of a place, the most telling first."""
    named = reading.named(offset)
    if named is not None:
        source, type_ = symbol_facts(reading, named.symbol)
        yield named.span, words.symbol_page(named.symbol, source, type_)
    block, member = member_at(reading.tree, offset)
    if member is not None:
        yield from _of_member(reading, member, offset)
        path = around(expressions_in(member), offset)
        yield from (page for expr in reversed(path) for page in _of_expression(reading, expr, offset))
    for head in (member, block):
        if head is not None and holds(head.keyword_span, offset):
            yield head.keyword_span, words.member_page(head)


def _of_member(reading: Reading, member: syntax.Member, offset: int) -> Iterator[Page]:
    """A plugin that is named, or an argument of one."""
    plugins = reading.toolchain.plugins
    parts = member.steps if isinstance(member, syntax.Test) else (member,)
    names = [getattr(part, "plugin", None) or getattr(part, "rule", None) for part in parts]
    for name in names:
        if name is not None and holds(name.span, offset) and name.text in plugins:
            yield name.span, words.plugin_page(name.text, plugins[name.text])
    if isinstance(member, syntax.Use) and member.arguments is not None and member.plugin.text in plugins:
        yield from _of_argument(plugins[member.plugin.text].arguments, member.arguments, offset)


def _of_argument(schema: object, arguments: syntax.MapLiteral, offset: int) -> Iterator[Page]:
    path: list[str] = []
    inner: syntax.Expr | None = arguments
    while isinstance(inner, syntax.MapLiteral):
        entry = next((one for one in inner.entries if holds(one.span, offset)), None)
        try:
            name = key_of(entry) if entry is not None else ""
        except NotPlainError:
            name = ""
        if entry is None or not name:
            return
        properties = properties_at(schema, path)
        if holds(entry.key.span, offset) and name in properties:
            yield entry.key.span, words.argument_line(name, properties[name])
        path.append(name)
        inner = entry.value


def _of_expression(reading: Reading, expr: syntax.Expr, offset: int) -> Iterator[Page]:
    types = reading.checked.types[reading.source.file]
    type_ = types.get(expr.span)
    shown = f": {type_}" if type_ is not None else ""
    match expr:
        case syntax.Name() if expr.name in ROOTS:
            yield expr.span, words.root_page(expr.name)
        case syntax.Select() if holds(expr.field_span, offset):
            of = types.get(expr.operand.span)
            known = words.attribute_of(of, expr.field) if of is not None else None
            if known is not None:
                yield expr.field_span, words.attribute_page(known, reading.source.slice(expr.span))
            elif type_ is not None:
                yield expr.field_span, words.code(f"{reading.source.slice(expr.span)}{shown}")
        case syntax.Call() if holds(expr.function_span, offset):
            of = types.get(expr.target.span) if expr.target is not None else None
            known = words.attribute_of(of, expr.function) if of is not None else None
            page = words.attribute_page(known, expr.function) if known else words.function_page(expr.function)
            if page is not None:
                yield expr.function_span, page
        case syntax.Literal() | syntax.QuantityLiteral() | syntax.DurationLiteral() if type_ is not None:
            yield expr.span, words.code(f"{reading.source.slice(expr.span)}{shown}")
        case _:
            pass


def symbol_facts(reading: Reading, symbol: Symbol) -> tuple[Source, Type | None]:
    """The text a symbol is given in, and the type of what it stands for where that is known."""
    source = reading.around[symbol.file][2][0]
    types = reading.checked.types.get(symbol.file, {})
    node = symbol.node
    if isinstance(node, syntax.Let):
        return source, types.get(node.value.span)
    if isinstance(node, syntax.Call) and variable_of(node) is not None and node.target is not None:
        of = types.get(node.target.span)
        return source, of.args[0] if of is not None and of.args else None
    return source, None
