"""The shape of a text: its symbols, what can be folded, what its words are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lsprotocol.types import DocumentSymbol, FoldingRange, FoldingRangeKind, Range, SymbolKind

from policyengine.language import syntax
from policyengine.language.parsing.grammar import CLOSING, OPENING
from policyengine.language.parsing.tokens import Token
from policyengine.language.schema import ROOTS
from policyengine.language.syntax import NameText, Span
from policyengine.language.syntax.expression_nodes import walk
from policyengine.server.language_server.cursor import blocks_of, expressions_in
from policyengine.server.language_server.project import Reading
from policyengine.server.language_server.scopes import SymbolKind as Named

_KINDS: dict[type, SymbolKind] = {
    syntax.Policy: SymbolKind.Module,
    syntax.Library: SymbolKind.Namespace,
    syntax.Overlay: SymbolKind.Module,
    syntax.Import: SymbolKind.Package,
    syntax.Param: SymbolKind.Constant,
    syntax.Let: SymbolKind.Variable,
    syntax.Function: SymbolKind.Function,
    syntax.Use: SymbolKind.Class,
    syntax.Disable: SymbolKind.Class,
    syntax.Test: SymbolKind.Method,
}
_RULE, _SETTING = SymbolKind.Event, SymbolKind.Property


def document_symbols(reading: Reading) -> list[DocumentSymbol]:
    """The imports and blocks of a text, with their members."""
    imports = [_symbol(reading, statement, ()) for statement in reading.tree.imports]
    return [*imports, *(_symbol(reading, block, block.members) for block in blocks_of(reading.tree))]


def _symbol(reading: Reading, member: syntax.Member, inner: Iterable[syntax.Member]) -> DocumentSymbol:
    named = (getattr(member, field, None) for field in ("name", "plugin", "point"))
    name = next((one for one in named if isinstance(one, NameText)), None)
    keyword = reading.source.slice(member.keyword_span)
    return DocumentSymbol(
        name=(name.text.strip() if name is not None else "") or keyword,
        detail=keyword,
        kind=_KINDS.get(type(member), _RULE if isinstance(member, syntax.Rule) else _SETTING),
        range=reading.range(member.span),
        selection_range=reading.range(name.span if name is not None else member.keyword_span),
        children=[_symbol(reading, one, ()) for one in inner],
    )


def folding(reading: Reading) -> list[FoldingRange]:
    """Brackets and comments of several lines. Made of the tokens, so that a mistake unfolds nothing else."""
    brackets = (reading.range(span) for span in _brackets(reading.cut.tokens))
    comments = (reading.range(span) for span in _comments(reading, reading.cut.comments))
    found = [
        *((one.start.line, one.end.line - 1, FoldingRangeKind.Region) for one in brackets),  # the closing one is shown
        *((one.start.line, one.end.line, FoldingRangeKind.Comment) for one in comments),
    ]
    return [FoldingRange(first, last, kind=kind) for first, last, kind in found if first < last]


def _brackets(tokens: Iterable[Token]) -> Iterator[Span]:
    opened: list[tuple[str, int]] = []
    for token in tokens:
        if token.kind in CLOSING:
            opened.append((token.kind, token.start))
        elif token.kind in OPENING:
            while opened:
                kind, start = opened.pop()
                if kind == OPENING[token.kind]:
                    yield Span(start, token.start)
                    break


def _comments(reading: Reading, comments: Iterable[Token]) -> Iterator[Span]:
    """Comments on lines of their own, right below each other, as one."""
    text, run = reading.source.text, list[Span]()
    for comment in [*comments, None]:
        if (
            comment is not None
            and run
            and not text[run[-1].end : comment.start].strip()
            and text.count("\n", run[-1].end, comment.start) == 1
        ):
            run.append(comment.span)
            continue
        if len(run) > 1:
            yield Span(run[0].start, run[-1].end)
        run = [comment.span] if comment is not None else []


TOKEN_TYPES = ("namespace", "class", "parameter", "variable", "property", "function", "method")
TOKEN_MODIFIERS = ("declaration", "readonly", "defaultLibrary")
_DECLARATION, _READONLY, _DEFAULT = 1, 2, 4
_TYPES = {
    Named.ALIAS: "namespace",
    Named.PARAM: "parameter",
    Named.LET: "variable",
    Named.FUNCTION: "function",
    Named.VARIABLE: "variable",
}


def semantic_tokens(readings: Iterable[Reading]) -> list[int]:
    """What grammars of colours cannot tell: params, lets, fields, functions, in LSP's encoding by differences.

    The encoding goes from token to token, so the tokens of all texts of a document are put together before it.
    """
    return _encoded([(reading.range(span), *token) for reading in readings for span, token in _tokens(reading).items()])


def _tokens(reading: Reading) -> dict[Span, tuple[str, int]]:
    found: dict[Span, tuple[str, int]] = {}
    for block in blocks_of(reading.tree):
        for part in (block, *block.members):
            for whole in expressions_in(part):
                found |= dict(token for expr in walk(whole) for token in _of(expr))
    for one in reading.scopes.in_file(reading.source.file):
        type_ = _TYPES.get(one.symbol.kind)
        if type_ is not None and reading.source.text[one.span.start] not in "\"'":
            readonly = _READONLY if one.symbol.kind is Named.PARAM else 0
            found[one.span] = (type_, readonly | (_DECLARATION if one.given else 0))
    return found


def _of(expr: syntax.Expr) -> Iterator[tuple[Span, tuple[str, int]]]:
    match expr:
        case syntax.Name() if expr.name in ROOTS and not expr.absolute:
            yield expr.span, ("variable", _READONLY | _DEFAULT)
        case syntax.Select():
            yield expr.field_span, ("property", _READONLY)
        case syntax.Call():
            yield expr.function_span, ("function" if expr.target is None else "method", _DEFAULT)
        case _:
            pass


def _encoded(tokens: Iterable[tuple[Range, str, int]]) -> list[int]:
    data: list[int] = []
    line = column = 0
    for range_, type_, modifiers in sorted(tokens, key=lambda one: (one[0].start.line, one[0].start.character)):
        start, end = range_.start, range_.end
        if start.line != end.line or end.character <= start.character:
            continue
        shift = start.character - column if start.line == line else start.character
        data += (start.line - line, shift, end.character - start.character, TOKEN_TYPES.index(type_), modifiers)
        line, column = start.line, start.character
    return data
