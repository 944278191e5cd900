"""One style for policy files. Line breaks inside an expression are the author's; everything else is the style's.

Two spaces a level; a member, field, step or require a line; brackets that begin with a line break have one
element a line, others stay on theirs. Commas are put and taken where the grammar leaves them open. Comments stay
where they are. Formatting twice gives what formatting once gave, and the tree is the same.

Which brackets hold what, and which signs stand close, comes from the rules of the grammar that apply to the members.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parse import parse_file
from policyengine.language.parsing.grammar import CLOSING, OPENING
from policyengine.language.parsing.member_parser import Applied, applications
from policyengine.language.parsing.split import Block, Piece, split
from policyengine.language.parsing.tokens import Token, Tokens, tokens_of
from policyengine.language.syntax import Span

INDENT = 2
_CLOSE_BEHIND = frozenset({"LPAR", "LSQB", "DOT"})
_CLOSE_BEFORE = frozenset({"RPAR", "RSQB", "COMMA", "COLON"})


def format_source(source: Source) -> tuple[str, list[Diagnostic]]:
    """The text in the one style, or the text as it is with the findings that keep it from being formatted."""
    _, findings = parse_file(source)
    if findings:
        return source.text, findings
    cut = tokens_of(source)
    blocks, _ = split(cut.tokens, source)
    return _Printer(source.text, cut, _Layout(cut.tokens, blocks)).run(), []


class _Printer:
    def __init__(self, text: str, cut: Tokens, found: _Layout) -> None:
        self.text, self.tokens, self.layout = text, cut.tokens, found
        self.starts = [token.start for token in cut.tokens]
        self.comments = cut.comments
        self.comment_starts = [comment.start for comment in cut.comments]
        self.earlier = dict(zip(found.heads[1:], found.heads, strict=False))
        self.out: list[str] = []
        self.after_comment = False
        """Whether the last thing written was a comment: nothing may follow it on its line."""
        self.led = False
        """Whether a comment on a line of its own leads the token that comes next."""
        self.indent = 0
        """Of the line that is being written."""
        self.open: list[tuple[int, int]] = []
        """The brackets around, if they have an element a line: the line's indent they were opened on, their own."""
        self.opened = found.groups
        self.wide: dict[int, Group] = {}
        """Brackets with an element a line, by the index of the closing one."""
        self.breaks: set[int] = set(found.heads)
        self.joined: set[int] = set()
        self.dropped: set[int] = set()
        self.commas: set[int] = set()
        self.padded: set[int] = set()
        for group in found.groups.values():
            self.plan(group)
        self.move_commas()

    # --- what is decided beforehand -------------------------------------------------------------------

    def plan(self, group: Group) -> None:
        """Decides where a pair of brackets breaks lines, and which of its commas there are."""
        form, last = group.form, group.closer - 1
        trailing = {last} if self.tokens[last].kind == "COMMA" else set()
        behind = {element - 1 for element in group.elements[1:]}
        if form is Form.BODY and self.tokens[group.opener].kind == "LBRACE":
            self.joined.add(group.opener)
        if not self.is_wide(group):
            self.joined.add(group.closer)
            self.dropped |= trailing
            if form in (Form.FIELDS, Form.BODY):
                self.commas |= {at for at in behind if self.tokens[at].kind != "COMMA"}
                self.padded |= {group.opener, group.closer}
            return
        self.wide[group.closer] = group
        self.breaks |= {*group.elements, group.closer}
        if form is Form.LIST and group.elements and not trailing:
            self.commas.add(last)
        elif form in (Form.FIELDS, Form.BODY):
            self.dropped |= trailing | {at for at in behind if self.tokens[at].kind == "COMMA"}

    def move_commas(self) -> None:
        """A comma behind a comment goes before it."""
        for comment in self.comments:
            at = bisect_left(self.starts, comment.end)
            if self.tokens[at].kind == "COMMA" and at not in self.dropped:
                self.dropped.add(at)
                self.commas.add(at - 1)

    def is_wide(self, group: Group) -> bool:
        """Whether brackets have an element a line."""
        first, last = self.tokens[group.opener], self.tokens[group.closer]
        inside = self.comments[
            bisect_left(self.comment_starts, first.end) : bisect_left(self.comment_starts, last.start)
        ]
        if not group.elements:
            return bool(inside)
        if group.form is Form.BODY:
            return True
        first_element = self.tokens[group.opener + 1].start
        led = bool(inside) and (
            inside[0].start < first_element or inside[-1].start > self.tokens[group.closer - 1].start
        )
        return led or self.broken(first.end, first_element) > 0

    def broken(self, start: int, end: int) -> int:
        """How many line breaks stand between two offsets."""
        return self.text.count("\n", start, end)

    # --- writing --------------------------------------------------------------------------------------

    def run(self) -> str:
        waiting = iter([*self.comments, None])
        comment = next(waiting)
        before = 0
        for at, token in enumerate(self.tokens):
            self.led = False
            while comment is not None and comment.start < token.start:
                self.comment(comment, self.broken(before, comment.start), at)
                before, comment = comment.end, next(waiting)
            self.token(at, self.broken(before, token.start))
            before = token.end
        return "".join(self.out).strip("\n") + "\n"

    def comment(self, comment: Token, breaks: int, at: int) -> None:
        """Writes a comment that stands somewhere before a token: behind the last one, or on a line of its own."""
        text = comment.text.rstrip()
        at += at in self.dropped
        if self.out and not breaks and not self.after_comment:
            self.out.append(f"  {text}")
        else:
            structural = at in self.breaks or self.tokens[at].kind == "$END"
            self.line(self.inner(structural), structural and self.blank_before(at, breaks))
            self.out.append(text)
            self.led = True
        self.after_comment = True

    def token(self, at: int, breaks: int) -> None:
        if at in self.dropped or self.tokens[at].kind == "$END":
            return
        if at in self.wide:
            self.indent = self.open.pop()[0]
            self.line(self.indent, False)
        elif at in self.breaks:
            self.line(self.inner(True), self.blank_before(at, breaks))
        elif self.after_comment or (breaks and at not in self.joined and self.tokens[at].kind != "COMMA"):
            opens_body = at in self.opened and self.opened[at].form is Form.BODY
            self.line(self.inner(opens_body), False)
        elif self.spaced(at):
            self.out.append(" ")
        self.after_comment = False
        self.out.append("on error" if self.tokens[at].kind == "ON_ERROR" else self.tokens[at].text)
        if at in self.commas:
            self.out.append(",")
        group = self.opened.get(at)
        if group and group.closer in self.wide:
            base = self.inner(True) if group.form is Form.BODY else self.indent
            self.open.append((base, base + INDENT))

    def inner(self, structural: bool) -> int:
        """The indent of the next line: of an element, or of a line that goes on with one."""
        own = self.open[-1][1] if self.open else 0
        return own if structural else own + INDENT

    def line(self, indent: int, blank: bool) -> None:
        self.indent = indent
        if self.out:
            self.out.append("\n\n" if blank else "\n")
        self.out.append(" " * indent)

    def blank_before(self, at: int, breaks: int) -> bool:
        """Whether an empty line stands before an element: the author's, and always one between blocks."""
        if not self.out or (self.open and self.out[-1] in ("(", "[", "{")):
            return False
        if at in self.earlier and not self.led:
            return breaks > 1 or not (self.tokens[at].kind == "IMPORT" == self.tokens[self.earlier[at]].kind)
        return breaks > 1

    def spaced(self, at: int) -> bool:
        """Whether a space stands before a token on its line."""
        if not self.out:
            return False
        token, before = self.tokens[at], self.tokens[at - 1]
        if at in self.layout.spaced or at - 1 in self.layout.spaced:
            return True
        if before.kind in CLOSING and token.kind in OPENING and self.opened[at - 1].closer == at:
            return False
        if at in self.padded or at - 1 in self.padded:
            return True
        if at in self.layout.close_before or at - 1 in self.layout.close_behind:
            return False
        if token.kind in _CLOSE_BEFORE or before.kind in _CLOSE_BEHIND or before.kind == "QMARK":
            return False
        return token.kind != "RBRACE" and before.kind != "LBRACE"


class Form(Enum):
    """What stands in a pair of brackets."""

    BODY = "the members of a block, or the items of a member: one a line, no commas"
    FIELDS = "fields: one a line without commas, or all on one line with"
    LIST = "values: one a line with a comma behind the last too, or all on one line"
    PAREN = "one expression, or a fixed number of them"


@dataclass(frozen=True, slots=True)
class Group:
    """A pair of brackets, as indices of tokens, with the indices at which its elements begin."""

    form: Form
    opener: int
    closer: int
    elements: tuple[int, ...]


Part = Applied | Token


class _Layout:
    """The brackets of a file without mistakes, and the tokens that stand close to what is before or behind them."""

    def __init__(self, tokens: Sequence[Token], blocks: Sequence[Block]) -> None:
        self.tokens = tokens
        self.starts = [token.start for token in tokens]
        self.groups: dict[int, Group] = {}
        """By their opening brackets."""
        self.close_before: set[int] = set()
        self.close_behind: set[int] = set()
        self.spaced: set[int] = set()
        """The `?` and `:` of conditions, which have a space on either side."""
        self.heads: list[int] = []
        """Where the blocks begin."""
        for block in blocks:
            self.block(block)

    def at(self, offset: int) -> int:
        """The index of the first token that begins at an offset or behind it."""
        return bisect_left(self.starts, offset)

    # --- blocks and members ---------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        self.heads.append(self.at(block.head.span.start))
        self.piece(block.head)
        for member in block.members:
            self.piece(member)
        if block.head.rule != "import":
            opener, closer = self.at(block.head.span.end), self.at(block.end) - 1
            members = tuple(self.at(member.span.start) for member in block.members)
            self.groups[opener] = Group(Form.BODY, opener, closer, members)

    def piece(self, piece: Piece) -> None:
        end = piece.span.end
        for one in applications(piece.rule, [*piece.tokens, Token("$END", "", end, end)]):
            self.applied(one.rule, one.span, [part for part in one.parts if part is not None])

    def applied(self, rule: str, span: Span, parts: Sequence[Part]) -> None:
        """Notes what one application of a rule of the grammar tells."""
        start, end = self.at(span.start), span.end
        if rule in _BRACKETS:
            form, before = _BRACKETS[rule]
            self.group(form, start + before, end, parts)
        elif rule in _BODIES:
            items = [part for part in parts if isinstance(part, Applied) and part.rule in _ITEMS]
            self.group(Form.BODY, self.at(items[0].span.start) - 1 if items else self.at(end) - 2, end, items)
        elif rule in _FIELD_MEMBERS:  # their fields never stand on one line
            fields = self.groups[self.at(parts[-1].span.start)]
            self.groups[fields.opener] = replace(fields, form=Form.BODY)
        elif rule in _BEHIND_OPERAND:
            self.close_before.add(self.at(parts[0].span.end))
        elif rule == "dotted_name":
            self.close_before.update(range(start + 1, self.at(end)))
        elif rule == "type_ref" and len(parts) > 1:
            self.close_before.add(self.at(parts[0].span.end))
        elif rule == "unary":
            self.close_behind.add(start)
        elif rule == "conditional":
            self.spaced |= {self.at(parts[0].span.end), self.at(parts[1].span.end)}
        if rule in _CALLED:
            self.called(parts[_CALLED[rule] :], end)

    def called(self, parts: Sequence[Part], end: int) -> None:
        """Notes a function's name and what stands in brackets behind it."""
        opener = self.at(parts[0].span.end)
        self.close_before.add(opener)
        inside = parts[1] if len(parts) > 1 else None
        if isinstance(inside, Applied) and inside.rule in ("arguments", "parameters"):
            closer = self.at(inside.span.end)
            self.group(Form.LIST, opener, self.tokens[closer].end, [one for one in inside.parts if one is not None])
        else:
            self.group(Form.LIST, opener, self.tokens[opener + 1].end, ())

    def group(self, form: Form, opener: int, end: int, parts: Sequence[Part]) -> None:
        """Notes brackets that end at an offset."""
        elements = tuple(self.at(part.span.start) for part in parts)
        self.groups[opener] = Group(form, opener, self.at(end) - 1, elements)


_BRACKETS = {
    "fields": (Form.FIELDS, 0),
    "list_literal": (Form.LIST, 0),
    "map_literal": (Form.LIST, 0),
    "param_values": (Form.LIST, 1),
    "param_range": (Form.PAREN, 1),
    "parenthesised": (Form.PAREN, 0),
}
"""Rules that end with a bracket: what stands in it, and how many tokens of the rule stand before it."""
_BODIES = frozenset({"queue", "filter", "preempt", "test"})
_ITEMS = frozenset({"order_by", "fair", "backoff", "flush", "victims", "max_victims", "require", "after"}) | frozenset(
    {"given_node", "given_pod", "given_now", "given_param"}
    | {"expect_on", "expect_before", "expect_rejected", "expect_waits", "expect_that"}
)
"""What stands in bodies, one a line."""
_FIELD_MEMBERS = frozenset({"gang", "quota", "permit", "bind"})
_BEHIND_OPERAND = frozenset({"select", "index", "method"})
"""Rules whose `.` or `[` stands close to the operand before it."""
_CALLED = {"call": 0, "method": 1, "function": 0}
"""Rules with a name and brackets, and the place of the name among their parts."""
