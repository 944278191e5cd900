"""What may stand between quotes where the cursor is: names of rules, nodes, pods, policies and libraries; labels."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language.checking.plugin_checks import PluginFacts
from policyengine.language.lint.rules.labels import WELL_KNOWN
from policyengine.server.language_server.cursor import Cursor
from policyengine.server.language_server.project import Reading
from policyengine.server.language_server.scopes import SymbolKind
from policyengine.server.language_server.words import values_at

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
        yield from _given(reading, cursor, SymbolKind.NODE)
    elif cursor.last in ("EXPECT", "BEFORE"):
        yield from _given(reading, cursor, SymbolKind.POD)
    elif "score" in before[-6:] and cursor.last == "COMMA":
        second = before[-4:-2] == ["score", "("]
        yield from _given(reading, cursor, SymbolKind.POD if second else SymbolKind.NODE)


def _rules(reading: Reading, cursor: Cursor) -> Iterator[tuple[str, str]]:
    for scope in reading.scopes_at(cursor.offset):
        for name, symbols in scope.rules.items():
            yield from ((name, type(symbol.node).__name__.lower()) for symbol in symbols)


def _given(reading: Reading, cursor: Cursor, kind: SymbolKind) -> Iterator[tuple[str, str]]:
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
