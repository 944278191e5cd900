"""What may be written where the cursor stands: asked of the grammar's parser, the checker's types and the schema.

Between quotes that is a name of a rule, node, pod, policy or library, or a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol.types import CompletionItem, CompletionItemKind, InsertTextFormat, MarkupContent, MarkupKind, TextEdit

from policyengine.language import syntax
from policyengine.language.checking.function_calls import OBJECT_TYPES
from policyengine.language.checking.given_objects import NODE_FIELDS, POD_FIELDS
from policyengine.language.checking.param_checks import NAMED_TYPES
from policyengine.language.checking.plugin_checks import PluginFacts
from policyengine.language.checking.setting_checks import BASES, POINTS
from policyengine.language.diagnostics import Source
from policyengine.language.functions import FUNCTIONS, Style
from policyengine.language.lint.rules.labels import WELL_KNOWN
from policyengine.language.parsing.grammar import RESERVED, word_terminals
from policyengine.language.parsing.member_actions import FIELDS_OF
from policyengine.language.parsing.split import ALLOWED
from policyengine.language.schema import ROOTS, object_info
from policyengine.language.syntax import Span
from policyengine.language.types import Kind, Type, content_of
from policyengine.server.language_server.cursor import Cursor, around, expressions_in, member_at, variables_around
from policyengine.server.language_server.hover import (
    MACROS,
    argument_line,
    attribute_page,
    methods_on,
    plugin_page,
    properties_at,
    signatures,
    symbol_facts,
    symbol_line,
    values_at,
)
from policyengine.server.language_server.project import Project, Reading
from policyengine.server.language_server.scopes import SymbolKind

TYPES = (*NAMED_TYPES, "list", "map", "optional")
_FILE_LEVEL = ("policy", "library", "overlay", "import")
_SNIPPETS = {
    "policy": 'policy "${1:name}" {\n  $0\n}',
    "library": 'library "${1:name}" {\n  $0\n}',
    "overlay": 'overlay "${1:name}" on "${2:policy}" {\n  $0\n}',
    "import": 'import "${1:library}"',
    "filter": 'filter "${1:name}" {\n  require ${2:condition}\n    else "${3:why not}"\n}',
    "score": 'score "${1:name}" weight ${2:1} = ${0:0}',
    "gang": 'gang "${1:name}" when ${2:condition} {\n  key: ${3:key}\n  min: ${4:1}\n  timeout: ${5:60s}\n}',
    "quota": 'quota "${1:name}" by ${2:pod.namespace} {\n  limit: {${3:cpu: 4}}\n}',
    "permit": 'permit "${1:name}" {\n  delay: ${2:10s}\n}',
    "queue": "queue {\n  order by ${1:pod.priority} desc\n}",
    "preempt": "preempt {\n  victims: ${1:condition}\n}",
    "test": 'test "${1:what holds}" {\n  given node "a" { allocatable: {cpu: 4, memory: 8Gi, pods: 110} }\n'
    '  given pod "p" { requests: {cpu: 500m} }\n  expect "p" on "a"\n}',
}


class Word(NamedTuple):
    """Something to write."""

    text: str
    kind: CompletionItemKind
    detail: str = ""
    page: str = ""
    snippet: str = ""


def completion(project: Project, reading: Reading, offset: int) -> list[CompletionItem]:
    """What may stand at an offset of a text, what is written of it already left aside."""
    cursor = Cursor(reading.source, offset)
    span = cursor.word
    if cursor.comment is not None:
        return []
    if cursor.string is not None and not _in_template(cursor):
        quote = 1 if cursor.string.text[:1] in "\"'" else 0
        span = Span(cursor.string.start + quote, max(offset, cursor.string.start + quote))
        found = [Word(name, CompletionItemKind.Value, detail) for name, detail in quoted_names(reading, cursor)]
    else:
        found = list(_words(project, reading, cursor))
    unique = {word.text: word for word in reversed(found)}
    return [_item(reading, word, span) for word in reversed(unique.values())]


def _item(reading: Reading, word: Word, span: Span) -> CompletionItem:
    edit = TextEdit(reading.range(span), word.snippet or word.text)
    return CompletionItem(
        label=word.text,
        kind=word.kind,
        detail=word.detail or None,
        documentation=MarkupContent(MarkupKind.Markdown, word.page) if word.page else None,
        insert_text_format=InsertTextFormat.Snippet if word.snippet else InsertTextFormat.PlainText,
        text_edit=edit,
    )


def _in_template(cursor: Cursor) -> bool:
    """Whether the cursor stands in a `{…}` of a text that is filled in."""
    assert cursor.string is not None
    written = cursor.source.text[cursor.string.start : cursor.offset].replace("{{", "")
    filled = cursor.last in ("ELSE", "LOG") or cursor.keys == ["annotations"]
    return filled and written.rfind("{") > written.rfind("}")


def _words(project: Project, reading: Reading, cursor: Cursor) -> Iterator[Word]:
    before = cursor.source.text[: _word_start(cursor)].rstrip()
    if before.endswith((".", ".?")):
        yield from _members(project, reading, cursor)
        return
    if cursor.string is not None:
        yield from _expression(project, reading, cursor)
        return
    yield from _beginnings(cursor)
    takes_key = cursor.begins_entry and cursor.rule in ("use", "test", "quota", "bind")
    if "INT" in cursor.expected and not takes_key:
        yield from _expression(project, reading, cursor)
    yield from _names(reading, cursor)
    yield from _keywords(cursor)


def _word_start(cursor: Cursor) -> int:
    """Where the word begins, in a string too."""
    if cursor.string is None:
        return cursor.word.start
    start = cursor.offset
    while cursor.source.text[start - 1 : start].isidentifier():
        start -= 1
    return start


# --- words of the grammar --------------------------------------------------------------------------------


def _beginnings(cursor: Cursor) -> Iterator[Word]:
    """Blocks and members, where one may begin."""
    if not cursor.inside:
        if cursor.begins_line and (cursor.piece is None or "$END" in cursor.expected):
            yield from (_keyword(name) for name in _FILE_LEVEL)
    elif cursor.block is not None and (cursor.piece is None or ("$END" in cursor.expected and cursor.begins_line)):
        yield from (_keyword(name) for name in sorted(ALLOWED[cursor.block.head.rule]))


def _keyword(name: str) -> Word:
    return Word(name, CompletionItemKind.Keyword, snippet=_SNIPPETS.get(name, ""))


def _keywords(cursor: Cursor) -> Iterator[Word]:
    terminals = {terminal: word for word, terminal in word_terminals().items()}
    if "ON_ERROR" in cursor.expected:
        yield _keyword("on error")
    for kind in sorted(cursor.expected - RESERVED):
        if kind in terminals:
            yield Word(terminals[kind], CompletionItemKind.Keyword)


# --- names that are not expressions ----------------------------------------------------------------------


def _names(reading: Reading, cursor: Cursor) -> Iterator[Word]:
    plugins = reading.toolchain.plugins
    if cursor.last in ("USE", "DISABLE") and "NAME" in cursor.expected:
        for name, facts in plugins.items():
            yield Word(name, CompletionItemKind.Class, "plugin", plugin_page(name, facts))
    elif cursor.last == "BASE":
        yield from (Word(name, CompletionItemKind.EnumMember) for name in BASES)
    elif cursor.rule == "on" and cursor.last == "ON":
        yield from (Word(name, CompletionItemKind.EnumMember, "extension point") for name in POINTS)
    elif cursor.rule in ("param", "function") and "NAME" in cursor.expected and "INT" not in cursor.expected:
        if cursor.last in ("COLON", "LPAR", "COMMA"):
            objects = OBJECT_TYPES if cursor.rule == "function" else ()
            yield from (Word(name, CompletionItemKind.TypeParameter, "type") for name in (*TYPES, *objects))
    elif cursor.rule == "use":
        yield from _arguments(reading, cursor)
    elif cursor.rule == "test":
        yield from _given(cursor)
    elif cursor.rule in FIELDS_OF and len(cursor.open) == 1 and cursor.begins_entry:
        yield from (Word(name, CompletionItemKind.Field, snippet=f"{name}: ") for name in FIELDS_OF[cursor.rule])


def _arguments(reading: Reading, cursor: Cursor) -> Iterator[Word]:
    facts = plugin_used(reading, cursor)
    if facts is None or not cursor.open:
        return
    if cursor.begins_entry:
        for name, schema in properties_at(facts.arguments, cursor.keys).items():
            yield Word(name, CompletionItemKind.Field, page=argument_line(name, schema), snippet=f"{name}: ")
        return
    for value in argument_values(reading, cursor):
        text = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
        yield Word(text, CompletionItemKind.EnumMember)


def _given(cursor: Cursor) -> Iterator[Word]:
    """Fields of a node or pod that a test gives, and of the objects in them."""
    if len(cursor.open) < 2 or not cursor.begins_entry:
        return
    kinds = [token.kind for token in cursor.before[: cursor.open[1]]]
    given = max((at for at, kind in enumerate(kinds) if kind == "GIVEN"), default=-1)
    fields = {"NODE": NODE_FIELDS, "POD": POD_FIELDS}.get("".join(kinds[given + 1 : given + 2]), {})
    for name in cursor.keys:
        info = object_info(_element(fields[name])) if name in fields else None
        fields = {one.name: one.type for one in info.fields.values()} if info is not None else {}
    yield from (Word(name, CompletionItemKind.Field, str(type_), snippet=f"{name}: ") for name, type_ in fields.items())


def _element(type_: Type) -> Type:
    while type_.kind in (Kind.LIST, Kind.OPTIONAL):
        type_ = type_.args[0]
    return type_


def _expression(project: Project, reading: Reading, cursor: Cursor) -> Iterator[Word]:
    """What an expression may begin with."""
    yield from _variables(project, reading, cursor)
    for scope in reading.scopes_at(cursor.offset):
        for symbol in scope.names.values():
            kind = CompletionItemKind.Function if symbol.kind is SymbolKind.FUNCTION else CompletionItemKind.Variable
            line = symbol_line(symbol, *symbol_facts(reading, symbol))
            yield Word(symbol.name, kind, line, getattr(symbol.node, "doc", ""))
        yield from (Word(name, CompletionItemKind.Module, "library") for name in scope.imports)
    for name, known in ROOTS.items():
        if name != "victim" or cursor.rule == "preempt":
            yield Word(name, CompletionItemKind.Variable, str(known.type), known.doc)
    for row in FUNCTIONS.values():
        if row.style in (Style.GLOBAL, Style.BOTH) and signatures(row):
            yield Word(row.name, CompletionItemKind.Function, signatures(row)[0], row.doc)
    yield Word("has", CompletionItemKind.Function, *MACROS["has"])
    yield from (Word(name, CompletionItemKind.Constant) for name in ("true", "false"))


def _variables(project: Project, reading: Reading, cursor: Cursor) -> Iterator[Word]:
    """Variables of macros around, and a function's parameters."""
    for source in cursor.completed():
        _, member = member_at(project.reading(reading.document, reading.text, source).tree, cursor.word.start)
        if member is None:
            continue
        yield from (
            Word(name, CompletionItemKind.Variable, "variable")
            for name in variables_around(expressions_in(member), cursor.word.start)
        )
        if isinstance(member, syntax.Function):
            for one in member.parameters:
                yield Word(one.name.text, CompletionItemKind.Variable, source.slice(one.type.span))
        return


def _members(project: Project, reading: Reading, cursor: Cursor) -> Iterator[Word]:
    """What a dot may be followed by."""
    at = _word_start(cursor)
    before = cursor.source.text[:at].rstrip().removesuffix("?").rstrip().removesuffix(".").rstrip()
    name = "".join(re.findall(r"\w+$", before, re.ASCII))
    scopes = reading.scopes_at(cursor.offset)
    library = next((scope.libraries[name] for scope in scopes if name in scope.libraries), None)
    if library is not None:
        for symbol in library.names.values():
            line = symbol_line(symbol, *symbol_facts(reading, symbol))
            yield Word(symbol.name, CompletionItemKind.Variable, line)
    elif (type_ := _type_before(project, reading, cursor, at)) is not None:
        yield from _of_type(type_)


def _of_type(type_: Type) -> Iterator[Word]:
    info = object_info(content_of(type_))
    if info is not None:
        for known in info.fields.values():
            yield Word(known.name, CompletionItemKind.Field, str(known.type), attribute_page(known, known.name))
        for known in info.methods.values() if type_.kind is Kind.OBJECT else ():
            yield Word(known.name, CompletionItemKind.Method, str(known.type), known.doc)
    for name, signature, doc in methods_on(type_):
        yield Word(name, CompletionItemKind.Method, signature, doc)


def _type_before(project: Project, reading: Reading, cursor: Cursor, at: int) -> Type | None:
    """The type of what stands before the dot: of the text with a name at the cursor, or of just what stands there."""
    for source in _completed(cursor):
        other = project.reading(reading.document, reading.text, source)
        _, member = member_at(other.tree, at)
        for expr in reversed(around(expressions_in(member), at)):
            if isinstance(expr, syntax.Select) and expr.field_span.start == at:
                type_ = other.checked.types[source.file].get(expr.operand.span)
                if type_ is not None:
                    return type_
    return None


def _completed(cursor: Cursor) -> Iterator[Source]:
    if cursor.string is not None:
        text, at = cursor.source.text, cursor.offset
        closing = "" if "}" in text[at : cursor.string.end] else "}"
        yield Source(cursor.source.file, f"{text[: _word_start(cursor)]}name__{closing}{text[at:]}")
        return
    yield from cursor.completed()
    if (chain := cursor.chain()) is not None:
        yield chain


_AMOUNTS = frozenset({"requests", "limits", "allocatable", "capacity"})
_LABELS = frozenset({"labels", "nodeSelector"})
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "amd.com/gpu")


def quoted_names(reading: Reading, cursor: Cursor) -> Iterator[tuple[str, str]]:
    """Names with what they are."""
    if cursor.rule == "import":
        yield from ((one.name, "library") for one in reading.scopes.libraries())
    elif cursor.rule == "overlay" and cursor.last == "ON":
        yield from ((one.name, "policy") for one in reading.scopes.policies())
    elif cursor.rule == "use":
        yield from ((str(value), "") for value in argument_values(reading, cursor) if isinstance(value, str))
    elif field := _map_of(cursor):
        yield from _keys(cursor, field)
    elif cursor.rule == "test":
        yield from _in_test(reading, cursor)


def _map_of(cursor: Cursor) -> str:
    """The map whose key is being written, '' for none: `labels` of `pod.labels[?"…"]` and of `labels: {"…": 1}`."""
    before = [token.text for token in cursor.before]
    if before[-1:] == ["?"]:
        before.pop()
    if before[-1:] == ["["] and len(before) > 1:
        return before[-2]
    if before[-2:] == ["domain", "("]:
        return "labels"
    if cursor.begins_entry and cursor.last in ("LBRACE", "COMMA") and cursor.keys:
        return cursor.keys[-1]
    return ""


def _keys(cursor: Cursor, field: str) -> Iterator[tuple[str, str]]:
    if field in _LABELS:
        yield from ((name, "well-known label") for name in sorted(WELL_KNOWN))
    elif field in _AMOUNTS:
        yield from ((name, "resource") for name in _RESOURCES)
    tokens = cursor.cut.tokens
    for at, token in enumerate(tokens):
        if token.kind == "STRING" and token is not cursor.string and at > 2:
            opened = at - 2 if tokens[at - 1].text == "?" else at - 1
            if tokens[opened].text == "[" and tokens[opened - 1].text == field:
                yield token.text.strip("\"'"), "used in this file"


def _in_test(reading: Reading, cursor: Cursor) -> Iterator[tuple[str, str]]:
    before = [token.text for token in cursor.before]
    if cursor.last == "BY":
        yield from ((name, kind) for name, kind in _rules(reading, cursor) if kind != "score")
        yield from ((name, "plugin") for name, facts in reading.toolchain.plugins.items() if facts.filters)
    elif before[-2:] == ["score", "("]:
        yield from ((name, kind) for name, kind in _rules(reading, cursor) if kind == "score")
    elif cursor.last == "ON":
        yield from _given_before(cursor, SymbolKind.NODE)
    elif cursor.last in ("EXPECT", "BEFORE"):
        yield from _given_before(cursor, SymbolKind.POD)
    elif "score" in before[-6:] and cursor.last == "COMMA":
        second = before[-4:-2] == ["score", "("]
        yield from _given_before(cursor, SymbolKind.POD if second else SymbolKind.NODE)


def _rules(reading: Reading, cursor: Cursor) -> Iterator[tuple[str, str]]:
    for scope in reading.scopes_at(cursor.offset):
        for name, symbols in scope.rules.items():
            yield from ((name, type(symbol.node).__name__.lower()) for symbol in symbols)


def _given_before(cursor: Cursor, kind: SymbolKind) -> Iterator[tuple[str, str]]:
    """The nodes or pods that the test gives before, by its words: the test itself is hardly ever whole."""
    word, found = kind.value, dict[str, None]()
    tokens = cursor.before
    for at in range(2, len(tokens)):
        if tokens[at - 2].text == "given" and tokens[at - 1].text == word and tokens[at].kind == "STRING":
            found.setdefault(tokens[at].text.strip("\"'"), None)
    yield from ((name, word) for name in found)


def plugin_used(reading: Reading, cursor: Cursor) -> PluginFacts | None:
    """The plugin of the `use` that the cursor stands in."""
    return reading.toolchain.plugins.get(cursor.before[1].text.strip("\"'")) if len(cursor.before) > 1 else None


def argument_values(reading: Reading, cursor: Cursor) -> list[object]:
    """The values the argument of a plugin may have at the cursor, where these are few."""
    facts = plugin_used(reading, cursor)
    if facts is None:
        return []
    key = [cursor.before[-2].text.strip("\"'")] if cursor.last == "COLON" and len(cursor.before) > 2 else []
    return values_at(facts.arguments, [*cursor.keys, *key])
