"""Where a cursor stands: the tokens before it and what the grammar takes there; in a syntax tree, what is around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from policyengine.language import syntax
from policyengine.language.checking.macros import is_macro
from policyengine.language.diagnostics import Source
from policyengine.language.parsing.grammar import CLOSING, OPENING
from policyengine.language.parsing.member_parser import expected_behind
from policyengine.language.parsing.split import Block, Piece, split
from policyengine.language.parsing.tokens import Token, Tokens, tokenise
from policyengine.language.syntax import Span
from policyengine.language.syntax.expression_nodes import children

PLACEHOLDER = "name__"
"""What stands for a word still to be written."""


@dataclass(frozen=True)
class Cursor:
    """A place in a text."""

    source: Source
    offset: int

    @cached_property
    def cut(self) -> Tokens:
        """The text as tokens."""
        return tokenise(self.source.text, self.source.file)

    @cached_property
    def comment(self) -> Token | None:
        """The comment the cursor stands in."""
        return next((one for one in self.cut.comments if one.start < self.offset <= one.end), None)

    @cached_property
    def _touched(self) -> Token | None:
        at = bisect_left(self.cut.tokens, self.offset, key=lambda token: token.end)
        token = self.cut.tokens[at] if at < len(self.cut.tokens) else None
        return token if token is not None and token.start < self.offset else None

    @cached_property
    def string(self) -> Token | None:
        """The string the cursor stands in, between its quotes."""
        token = self._touched
        if token is None or token.kind != "STRING":
            return None
        closed = token.end == self.offset and token.start not in self.cut.broken
        return None if closed else token

    @cached_property
    def word(self) -> Span:
        """The word the cursor stands in or behind; of no width where there is none."""
        token = self._touched
        if token is not None and (token.text[0].isalpha() or token.text[0] == "_") and token.kind != "STRING":
            return token.span
        return Span(self.offset, self.offset)

    @cached_property
    def start(self) -> int:
        """Where what is being written begins: the string, or the word."""
        return self.string.start if self.string is not None else self.word.start

    @cached_property
    def block(self) -> Block | None:
        """The block the cursor stands in."""
        blocks, _ = split(self.cut.tokens, self.source)
        return next((one for one in reversed(blocks) if one.head.tokens[0].start < self.start), None)

    @cached_property
    def inside(self) -> bool:
        """Whether the cursor stands between the braces of its block."""
        block = self.block
        if block is None or block.head.rule == "import":
            return False
        closed = self.source.text[block.end - 1 : block.end] == "}"
        opened = any(token.kind == "LBRACE" for token in self._between(block.head.tokens[-1].end, self.start))
        return opened and not (closed and self.start >= block.end)

    @cached_property
    def piece(self) -> Piece | None:
        """The member or head that what stands before the cursor belongs to."""
        block = self.block
        if block is None:
            return None
        if not self.inside:
            return block.head if block.head.rule == "import" or self.start <= block.head.tokens[-1].end + 1 else None
        return next((one for one in reversed(block.members) if one.tokens[0].start < self.start), None)

    @property
    def rule(self) -> str:
        """The grammar's rule for the piece: `filter`, `use`; '' outside of one."""
        return self.piece.rule if self.piece is not None else ""

    @cached_property
    def before(self) -> Sequence[Token]:
        """The tokens of the piece before what is being written."""
        piece = self.piece
        return self._between(piece.tokens[0].start, self.start) if piece is not None else ()

    @cached_property
    def expected(self) -> frozenset[str]:
        """The terminals the grammar takes here; none where what stands before fits nothing."""
        return expected_behind(self.rule, self.before) if self.rule and self.before else frozenset()

    @property
    def last(self) -> str:
        """The kind of the token before what is being written, '' without one."""
        return self.before[-1].kind if self.before else ""

    @cached_property
    def begins_line(self) -> bool:
        """Whether nothing stands before what is being written on its line."""
        text = self.source.text
        return not text[text.rfind("\n", 0, self.start) + 1 : self.start].strip()

    def _between(self, start: int, end: int) -> Sequence[Token]:
        tokens = self.cut.tokens[:-1]
        first = bisect_left(tokens, start, key=lambda token: token.start)
        return tokens[first : bisect_right(tokens, end, key=lambda token: token.end)]

    # --- brackets -------------------------------------------------------------------------------------

    @cached_property
    def open(self) -> list[int]:
        """The brackets of the piece that are open here, by their place among the tokens before."""
        found: list[int] = []
        for at, token in enumerate(self.before):
            if token.kind in CLOSING:
                found.append(at)
            elif token.kind in OPENING and found:
                found.pop()
        return found

    @cached_property
    def keys(self) -> list[str]:
        """The keys of maps around the cursor, from the outside: `labels` in `given pod "p" { labels: { … `."""
        return [
            self.before[at - 2].text.strip("\"'")
            for at in self.open
            if at >= 2 and self.before[at].kind in ("LBRACE", "LSQB") and self.before[at - 1].kind == "COLON"
        ]

    @property
    def begins_entry(self) -> bool:
        """Whether a key of a map or a field may be written here."""
        return bool(self.open) and self.before[self.open[-1]].kind == "LBRACE" and self.last != "COLON"

    # --- texts that can be parsed ---------------------------------------------------------------------

    def completed(self) -> Iterator[Source]:
        """Texts in which a name stands at the cursor, the likeliest to be parsed first; all before it is as it was."""
        text, name = self.source.text, PLACEHOLDER
        before, behind = text[: self.word.start], text[self.word.end :]
        yield Source(self.source.file, f"{before}{name}{behind}")
        if self.piece is None:
            return
        closing = "".join(CLOSING[self.before[at].kind] for at in reversed(self.open))
        rest = text[max(self.piece.tokens[-1].end, self.word.end) :]
        yield Source(self.source.file, f"{before}{name}{closing}\n{rest}")

    def chain(self) -> Source | None:
        """A text in which the member is a let of just what stands before a dot at the cursor, as far to the right.

        `gang "g" when node.free.` becomes `let name__ = … node.free.name__`: the longest expression that ends at the
        dot, at its place.
        """
        if self.piece is None or self.last not in ("DOT", "QMARK"):
            return None
        text, head = self.source.text, f"let {PLACEHOLDER} = "
        start = self.piece.tokens[0].start
        behind = text[max(self.piece.tokens[-1].end, self.word.end) :]
        let = tokenise(head, self.source.file).tokens[:-1]
        operand = self.before[: -2 if self.last == "QMARK" else -1]
        for at, token in enumerate(operand):
            if token.start - start >= len(head) and "$END" in expected_behind("let", [*let, *operand[at:]]):
                written = text[token.start : self.word.start]
                before = text[:start] + head.ljust(token.start - start)
                return Source(self.source.file, f"{before}{written}{PLACEHOLDER}\n{behind}")
        return None


BlockNode = syntax.Policy | syntax.Library | syntax.Overlay
PlainMaps = syntax.Use | syntax.Quota | syntax.GivenNode | syntax.GivenPod
"""What has maps of plain data, in which a bare key is a string."""


def blocks_of(file: syntax.File) -> tuple[BlockNode, ...]:
    """The blocks of a file, in the order they are written."""
    found: list[BlockNode] = [*file.libraries, *file.policies, *file.overlays]
    return tuple(sorted(found, key=lambda block: block.span.start))


def holds(span: Span, offset: int) -> bool:
    """Whether a cursor is at the place, its end included."""
    return span.start <= offset <= span.end


def member_at(file: syntax.File, offset: int) -> tuple[BlockNode | None, syntax.Member | None]:
    """The block and the member of it around an offset."""
    block = next((block for block in blocks_of(file) if holds(block.span, offset)), None)
    if block is None:
        return None, next((one for one in file.imports if holds(one.span, offset)), None)
    return block, next((member for member in block.members if holds(member.span, offset)), None)


def expressions_in(part: object) -> Iterator[syntax.Expr]:
    """The expressions of a member or a part of one, those filled into texts too; of maps of plain data, the values."""
    if isinstance(part, syntax.Expr):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from expressions_in(inner)
    elif isinstance(part, BlockNode):
        yield from expressions_in(getattr(part, "when", None))
    elif isinstance(part, syntax.Node):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if isinstance(value, syntax.MapLiteral) and isinstance(part, PlainMaps):
                yield from (entry.value for entry in value.entries)
            else:
                yield from expressions_in(value)


def around(roots: Iterable[syntax.Expr], offset: int) -> list[syntax.Expr]:
    """The expressions around an offset, the innermost last."""
    path: list[syntax.Expr] = []
    level = list(roots)
    while level:
        inner = next((expr for expr in level if holds(expr.span, offset)), None)
        if inner is None:
            break
        path.append(inner)
        level = list(children(inner))
    return path


def variables_around(roots: Iterable[syntax.Expr], offset: int) -> dict[str, syntax.Call]:
    """The variables of macros that can be named at an offset, each with its macro."""
    found: dict[str, syntax.Call] = {}
    for expr in around(roots, offset):
        if isinstance(expr, syntax.Call) and (variable := variable_of(expr)) and offset > variable.span.end:
            found[variable.name] = expr
    return found


def variable_of(call: syntax.Call) -> syntax.Name | None:
    """The variable a macro makes, None for a call that is none."""
    if is_macro(call) and len(call.args) > 1 and isinstance(call.args[0], syntax.Name):
        return call.args[0]
    return None
