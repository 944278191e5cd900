"""Definition, references, highlights and rename."""

from __future__ import annotations

import re

from lsprotocol.types import Location, PrepareRenamePlaceholder, Range, TextEdit, WorkspaceEdit

from policyengine.compiler.front import Parsed, checked_trees
from policyengine.language.diagnostics import Edit, Severity, Source
from policyengine.language.edits import applied
from policyengine.language.parse import parse_file
from policyengine.language.parsing.grammar import RESERVED, word_terminals
from policyengine.language.syntax import Span
from policyengine.server.language_server.project import Reading
from policyengine.server.language_server.scopes import Occurrence, Symbol, SymbolKind

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BARE = frozenset({SymbolKind.PARAM, SymbolKind.LET, SymbolKind.FUNCTION, SymbolKind.ALIAS, SymbolKind.VARIABLE})
"""What is named without quotes."""
_UNWRITABLE = re.compile(r'["\\\x00-\x1f\x7f]')


class CannotRename(Exception):
    """Why a name cannot become another one, in a sentence."""


def definition(reading: Reading, offset: int) -> Location | None:
    """Where what the cursor is on gets its name."""
    found = reading.named(offset)
    return reading.location(found.symbol.file, found.symbol.place) if found is not None else None


def references(reading: Reading, offset: int, declaration: bool) -> list[Location]:
    """Where what the cursor is on is named."""
    found = reading.named(offset)
    if found is None:
        return []
    named = reading.scopes.of(found.symbol)
    return [reading.location(one.file, one.span) for one in named if declaration or not one.given]


def highlights(reading: Reading, offset: int) -> list[Range]:
    """Where in the text what the cursor is on is named."""
    found = reading.named(offset)
    named = reading.scopes.of(found.symbol) if found is not None else ()
    return [reading.range(one.span) for one in named if one.file == reading.source.file]


def renamed_range(reading: Reading, offset: int) -> PrepareRenamePlaceholder | None:
    """The range of the name at the cursor, without its quotes, and the name; None for what cannot be renamed."""
    found = reading.named(offset)
    if found is None:
        return None
    return PrepareRenamePlaceholder(reading.range(_inner(reading.source, found)), found.symbol.name)


def rename(reading: Reading, offset: int, name: str) -> WorkspaceEdit | None:
    """The edits that give the symbol at the cursor another name; None where there is no symbol. Raises CannotRename:
    the name is none, or would change what is checked."""
    found = reading.named(offset)
    if found is None:
        return None
    symbol = found.symbol
    _check_name(symbol, name)
    edits: dict[str, dict[Span, str]] = {}
    for one in _named(reading, symbol):
        span, text = _replacement(reading, one, name)
        edits.setdefault(one.file, {})[span] = text
    _check_result(reading, edits)
    changes: dict[str, list[TextEdit]] = {}
    for file, places in edits.items():
        for span, text in sorted(places.items(), key=lambda item: item[0].start):
            location = reading.location(file, span)
            changes.setdefault(location.uri, []).append(TextEdit(location.range, text))
    return WorkspaceEdit(changes=changes)


def _named(reading: Reading, symbol: Symbol) -> list[Occurrence]:
    """Every place to write the new name; an import without `as` gets one, and keeps the name it is used under."""
    found = list(reading.scopes.of(symbol))
    if symbol.kind is SymbolKind.ALIAS and not any(one.given for one in found):
        found.append(Occurrence(symbol.file, symbol.span, symbol, given=True))
    return found


def _check_name(symbol: Symbol, name: str) -> None:
    if symbol.kind not in _BARE:
        if not name.strip() or _UNWRITABLE.search(name):
            raise CannotRename(f"`{name}` cannot be written between quotes as a name")
    elif not _NAME.fullmatch(name) or word_terminals().get(name) in RESERVED:
        raise CannotRename(f"`{name}` is no name: letters, digits and `_`, none of the reserved words")


def _inner(source: Source, one: Occurrence) -> Span:
    """The name without its quotes."""
    text = source.slice(one.span)
    quoted = len(text) > 1 and text[0] in "\"'" and text[1:-1] == one.symbol.name
    return Span(one.span.start + 1, one.span.end - 1) if quoted else one.span


def _replacement(reading: Reading, one: Occurrence, name: str) -> tuple[Span, str]:
    """What to write where; an `import` without `as` gets one, so that the other of its two names goes on."""
    _, _, (source, tree, _) = reading.around[one.file]
    kind, span = one.symbol.kind, one.span
    if any(statement.name.span == span and statement.alias is None for statement in tree.imports):
        if kind is SymbolKind.ALIAS and one.given:
            return Span(span.end, span.end), f" as {name}"
        if kind is SymbolKind.LIBRARY:
            return span, f'"{name}" as {one.symbol.name}'
    inner = _inner(source, one)
    return inner, f'"{name}"' if inner == span and kind not in _BARE else name


def _check_result(reading: Reading, edits: dict[str, dict[Span, str]]) -> None:
    """Checks the texts as they would be: a new mistake means that the name is taken, or stands for another thing."""
    after: list[Parsed] = []
    for _, _, (source, _, _) in reading.around.values():
        places = [Edit(span, text) for span, text in edits.get(source.file, {}).items()]
        changed = Source(source.file, applied(source.text, places))
        after.append((changed, *parse_file(changed)))
    plugins = reading.toolchain.plugins
    before = checked_trees([parsed for _, _, parsed in reading.around.values()], plugins).findings
    known = sum(one.severity is Severity.ERROR for one in before)
    errors = [one for one in checked_trees(after, plugins).findings if one.severity is Severity.ERROR]
    if len(errors) > known:
        old = {(one.code, one.message) for one in before}
        new = next((one for one in errors if (one.code, one.message) not in old), errors[0])
        raise CannotRename(f"the new name makes a mistake: {new.message}")
