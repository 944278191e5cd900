"""What a place in a policy is: its type, its meaning, and what is found there; and what the language's words are, in
Markdown: fields, functions, plugins, members, symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from policyengine.language import syntax
from policyengine.language.attributes import Attribute
from policyengine.language.checking.literal_types import NotPlainError, key_of
from policyengine.language.checking.macros import FOLDS
from policyengine.language.checking.plugin_checks import PluginFacts
from policyengine.language.diagnostics import Diagnostic, Source, listed
from policyengine.language.functions import FUNCTIONS, Function, Style
from policyengine.language.functions.table import unify
from policyengine.language.schema import ROOTS, object_info
from policyengine.language.syntax import Span
from policyengine.language.types import Kind, Type, content_of
from policyengine.server.language_server.cursor import around, expressions_in, holds, member_at, variable_of
from policyengine.server.language_server.project import Reading
from policyengine.server.language_server.scopes import Symbol, SymbolKind

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
        yield named.span, titled(symbol_line(named.symbol, source, type_), getattr(named.symbol.node, "doc", ""))
    block, member = member_at(reading.tree, offset)
    if member is not None:
        yield from _of_member(reading, member, offset)
        path = around(expressions_in(member), offset)
        yield from (page for expr in reversed(path) for page in _of_expression(reading, expr, offset))
    for head in (member, block):
        if head is not None and holds(head.keyword_span, offset):
            yield head.keyword_span, (type(head).__doc__ or "").strip()


def _of_member(reading: Reading, member: syntax.Member, offset: int) -> Iterator[Page]:
    """A plugin that is named, or an argument of one."""
    plugins = reading.toolchain.plugins
    parts = member.steps if isinstance(member, syntax.Test) else (member,)
    names = [getattr(part, "plugin", None) or getattr(part, "rule", None) for part in parts]
    for name in names:
        if name is not None and holds(name.span, offset) and name.text in plugins:
            yield name.span, plugin_page(name.text, plugins[name.text])
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
            yield entry.key.span, argument_line(name, properties[name])
        path.append(name)
        inner = entry.value


def _of_expression(reading: Reading, expr: syntax.Expr, offset: int) -> Iterator[Page]:
    types = reading.checked.types[reading.source.file]
    type_ = types.get(expr.span)
    shown = f": {type_}" if type_ is not None else ""
    match expr:
        case syntax.Name() if expr.name in ROOTS:
            yield expr.span, attribute_page(ROOTS[expr.name], expr.name)
        case syntax.Select() if holds(expr.field_span, offset):
            of = types.get(expr.operand.span)
            known = attribute_of(of, expr.field) if of is not None else None
            if known is not None:
                yield expr.field_span, attribute_page(known, reading.source.slice(expr.span))
            elif type_ is not None:
                yield expr.field_span, code(f"{reading.source.slice(expr.span)}{shown}")
        case syntax.Call() if holds(expr.function_span, offset):
            of = types.get(expr.target.span) if expr.target is not None else None
            known = attribute_of(of, expr.function) if of is not None else None
            page = attribute_page(known, expr.function) if known else function_page(expr.function)
            if page is not None:
                yield expr.function_span, page
        case syntax.Literal() | syntax.QuantityLiteral() | syntax.DurationLiteral() if type_ is not None:
            yield expr.span, code(f"{reading.source.slice(expr.span)}{shown}")
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


MACROS: Mapping[str, tuple[str, str]] = {
    "has": ("has(e.field)", "whether the field is there"),
    "all": ("list.all(x, test)", "whether the test holds for every element"),
    "exists": ("list.exists(x, test)", "whether the test holds for an element"),
    "exists_one": ("list.exists_one(x, test)", "whether the test holds for exactly one element"),
    "existsOne": ("list.existsOne(x, test)", "whether the test holds for exactly one element"),
    "filter": ("list.filter(x, test)", "the elements for which the test holds"),
    "map": ("list.map(x, value)", "what the value is for each element"),
    "optMap": ("optional.optMap(x, value)", "the value of what is there, as an optional"),
    "optFlatMap": ("optional.optFlatMap(x, optional)", "the optional that what is there leads to"),
}
"""Macros have no signature: they take an expression with a variable of its own."""
_ON_LISTS = (*FOLDS,)
_ON_OPTIONALS = ("optMap", "optFlatMap")


def code(text: str) -> str:
    """A block of policy text."""
    return f"```policy\n{text}\n```"


def titled(title: str, *paragraphs: str) -> str:
    """A block of policy text with paragraphs below."""
    return "\n\n".join([code(title), *(one for one in paragraphs if one)])


def attribute_of(type_: Type, name: str) -> Attribute | None:
    """A field or method of a type, or of what an optional holds."""
    info = object_info(content_of(type_))
    return (info.fields.get(name) or info.methods.get(name)) if info is not None else None


def attribute_page(known: Attribute, whole: str) -> str:
    """A field of the schema. `whole`: what it is written as."""
    absent = "It may be absent: read it as `.?name`, or behind `has`." if known.optional else ""
    info = object_info(content_of(known.type))
    fields = f"Fields: {listed(info.fields)}" if info is not None else ""
    return titled(f"{whole}: {known.type}", known.doc, absent, fields)


def function_page(name: str) -> str | None:
    """A function of the language with all its signatures, None where there is none."""
    if name in MACROS:
        return titled(*MACROS[name])
    row = FUNCTIONS.get(name)
    return titled("\n".join(signatures(row)), row.doc) if row is not None and row.style is not Style.OPERATOR else None


def signatures(row: Function) -> list[str]:
    """The ways to call a function in a policy."""
    found = []
    for overload in row.overloads:
        if not overload.dynamic:
            types = [str(one) for one in overload.parameters[row.added :]]
            target = f"{types.pop(0)}." if row.style is Style.METHOD and types else ""
            found.append(f"{target}{row.name}({', '.join(types)}): {overload.result}")
    return found


def methods_on(type_: Type) -> list[tuple[str, str, str]]:
    """What can be called on a value: name, signature, meaning."""
    found = [
        (row.name, next(iter(signatures(row)), row.name), row.doc)
        for row in FUNCTIONS.values()
        if row.style in (Style.METHOD, Style.BOTH) and "." not in row.name and _takes(row, type_)
    ]
    macros = _ON_LISTS if type_.kind in (Kind.LIST, Kind.MAP) else ()
    macros = _ON_OPTIONALS if type_.kind is Kind.OPTIONAL else macros
    return [*found, *((name, *MACROS[name]) for name in macros)]


def _takes(row: Function, type_: Type) -> bool:
    return any(
        not one.dynamic and bool(one.parameters) and unify(one.parameters[0], type_, {}) for one in row.overloads
    )


def plugin_page(name: str, facts: PluginFacts) -> str:
    """A plugin: what it does in a decision, and its arguments."""
    does = " and ".join(word for word, so in (("filters", facts.filters), ("scores", facts.scores)) if so)
    weight = f", weight {facts.default_weight} by default" if facts.default_weight is not None else ""
    installed = "" if facts.in_base else "A package brings it; it judges only where it is used by name."
    properties = facts.arguments.get("properties", {})
    arguments = "\n".join(f"- {argument_line(key, schema)}" for key, schema in properties.items())
    head = f"A plugin that {does}{weight}." if does else "A plugin that neither filters nor scores."
    return titled(f"use {name}", head, installed, f"Arguments:\n\n{arguments}" if arguments else "")


def argument_line(name: str, schema: Mapping[str, Any]) -> str:
    """An argument in one line: name, type, choices, default, meaning."""
    type_ = schema.get("type", "")
    choices = schema.get("enum")
    parts = [
        f"`{name}`",
        str(type_) if isinstance(type_, str) else " or ".join(map(str, type_)),
        f"one of {listed(choices)}" if choices else "",
        f"default `{schema['default']}`" if "default" in schema else "",
        str(schema.get("description", "")),
    ]
    return ", ".join(part for part in parts if part)


def symbol_line(symbol: Symbol, source: Source, type_: Type | None) -> str:
    """What a name stands for, in a line. `source`: the text it is given in."""
    node, shown = symbol.node, f": {type_}" if type_ is not None else ""
    match node:
        case syntax.Param():
            return " ".join(source.slice(node.span).split())
        case syntax.Function():
            parameters = ", ".join(f"{one.name.text}: {source.slice(one.type.span)}" for one in node.parameters)
            return f"function {symbol.name}({parameters}): {source.slice(node.result.span)}"
        case syntax.Let():
            return f"let {symbol.name}{shown}"
        case syntax.FunctionParameter():
            return f"{symbol.name}: {source.slice(node.type.span)}"
        case syntax.Member() if symbol.kind is SymbolKind.RULE:
            return f'{type(node).__name__.lower()} "{symbol.name}"'
        case _ if symbol.kind is SymbolKind.VARIABLE:
            return f"{symbol.name}{shown}"
        case _:
            return f'{symbol.kind.value} "{symbol.name}"'


# --- A plugin's arguments: what its JSON schema says about a key at a path --------------------------------


def properties_at(schema: object, path: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The arguments inside of a path of keys, with their schemas; items of lists count as their list."""
    for name in path:
        schema = _below(schema).get(name, {})
    return _below(schema)


def values_at(schema: object, path: Sequence[str]) -> list[Any]:
    """The values a key may have, where these are few."""
    inner = properties_at(schema, path[:-1]).get(path[-1], {}) if path else {}
    if isinstance(inner.get("items"), Mapping):
        inner = inner["items"]
    if inner.get("type") == "boolean":
        return [True, False]
    return list(inner.get("enum", ()))


def _below(schema: object) -> Mapping[str, Mapping[str, Any]]:
    while isinstance(schema, Mapping) and "properties" not in schema and isinstance(schema.get("items"), Mapping):
        schema = schema["items"]
    found = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return found if isinstance(found, Mapping) else {}
