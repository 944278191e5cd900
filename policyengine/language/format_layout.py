"""What the formatter has to know of a file's tokens: which brackets hold what, and which signs stand close.

It comes from the rules of the grammar that apply to the members.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from policyengine.language.parsing.member_parser import Applied, applications
from policyengine.language.parsing.split import Block, Piece
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Span


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


@dataclass(slots=True)
class Layout:
    """The brackets of a file, and the tokens that stand close to what is before or behind them."""

    groups: list[Group] = field(default_factory=list)
    close_before: set[int] = field(default_factory=set)
    close_behind: set[int] = field(default_factory=set)
    spaced: set[int] = field(default_factory=set)
    """The `?` and `:` of conditions, which have a space on either side."""
    heads: list[int] = field(default_factory=list)
    """Where the blocks begin."""


Part = Applied | Token


def layout(tokens: Sequence[Token], blocks: Sequence[Block]) -> Layout:
    """The layout of a file that has no mistakes."""
    survey = _Survey(tokens)
    for block in blocks:
        survey.block(block)
    survey.layout.groups = list(survey.groups.values())
    return survey.layout


class _Survey:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.layout = Layout()
        self.tokens = tokens
        self.starts = [token.start for token in tokens]
        self.groups: dict[int, Group] = {}

    def at(self, offset: int) -> int:
        """The index of the first token that begins at an offset or behind it."""
        return bisect_left(self.starts, offset)

    # --- blocks and members ---------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        self.layout.heads.append(self.at(block.head.span.start))
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
        start, end, found = self.at(span.start), span.end, self.layout
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
            found.close_before.add(self.at(parts[0].span.end))
        elif rule == "dotted_name":
            found.close_before.update(range(start + 1, self.at(end)))
        elif rule == "type_ref" and len(parts) > 1:
            found.close_before.add(self.at(parts[0].span.end))
        elif rule == "unary":
            found.close_behind.add(start)
        elif rule == "conditional":
            found.spaced |= {self.at(parts[0].span.end), self.at(parts[1].span.end)}
        if rule in _CALLED:
            self.called(parts[_CALLED[rule] :], end)

    def called(self, parts: Sequence[Part], end: int) -> None:
        """Notes a function's name and what stands in brackets behind it."""
        opener = self.at(parts[0].span.end)
        self.layout.close_before.add(opener)
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
