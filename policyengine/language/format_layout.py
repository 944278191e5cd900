"""What the formatter has to know of a file's tokens: which brackets hold what, and which signs stand close.

It comes from the grammar's own rules: the automaton runs over the members once more, and instead of a tree its
actions note where the parts of a rule begin and end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from policyengine.language.parsing.automaton import Action, run
from policyengine.language.parsing.split import Block, Piece
from policyengine.language.parsing.tokens import Token


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


class Shape(NamedTuple):
    """A part of the text, as far as the formatter wants to know it."""

    start: int
    end: int
    parts: tuple[Shape | Token, ...] = ()


def layout(tokens: Sequence[Token], blocks: Sequence[Block]) -> Layout:
    """The layout of a file that has no mistakes."""
    survey = _Survey(tokens)
    for block in blocks:
        survey.block(block)
    return survey.layout


class _Survey(dict[str, Action]):
    """The actions: one for each rule, made as it is asked for. Each returns the shape of what it covers."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__()
        self.layout = Layout()
        self.tokens = tokens
        self.starts = [token.start for token in tokens]

    def __missing__(self, rule: str) -> Action:
        note = getattr(self, f"on_{rule}", None)

        def action(start: int, end: int, *children: Shape | Token | None) -> Shape:
            shape = Shape(start, end, tuple(child for child in children if child is not None))
            if note:
                note(shape)
            return shape

        self[rule] = action
        return action

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
            self.layout.groups.append(Group(Form.BODY, opener, closer, members))

    def piece(self, piece: Piece) -> None:
        end = piece.span.end
        run(piece.rule, [*piece.tokens, Token("$END", "", end, end)], self)

    def group(self, form: Form, opener: int, end: int, parts: Sequence[Shape | Token]) -> None:
        """Notes brackets that end at an offset."""
        elements = tuple(self.at(part.start) for part in parts)
        self.layout.groups.append(Group(form, opener, self.at(end) - 1, elements))

    def body(self, shape: Shape, items: Sequence[Shape | Token]) -> None:
        closer = self.at(shape.end) - 1
        opener = self.at(items[0].start) - 1 if items else closer - 1
        self.group(Form.BODY, opener, shape.end, items)

    def on_queue(self, shape: Shape) -> None:
        self.body(shape, shape.parts)

    def on_filter(self, shape: Shape) -> None:
        self.body(shape, [part for part in shape.parts if self.begins(part, "REQUIRE")])

    def on_preempt(self, shape: Shape) -> None:
        items = [part for part in shape.parts if self.begins(part, "VICTIMS", "MAXVICTIMS", "ORDER")]
        self.body(shape, [part for part in items if part.start > self.tokens[self.at(shape.start) + 1].start])

    def on_test(self, shape: Shape) -> None:
        self.body(shape, shape.parts[1:])

    def begins(self, part: Shape | Token, *kinds: str) -> bool:
        return isinstance(part, Shape) and self.tokens[self.at(part.start)].kind in kinds

    def on_gang(self, shape: Shape) -> None:
        self.fields_body(shape)

    on_quota = on_permit = on_bind = on_gang

    def fields_body(self, shape: Shape) -> None:
        """The fields of a rule are its body: they never stand on one line."""
        last = self.layout.groups.pop()
        self.layout.groups.append(Group(Form.BODY, last.opener, last.closer, last.elements))

    def on_fields(self, shape: Shape) -> None:
        self.group(Form.FIELDS, self.at(shape.start), shape.end, shape.parts)

    # --- values ---------------------------------------------------------------------------------------

    def on_list_literal(self, shape: Shape) -> None:
        self.group(Form.LIST, self.at(shape.start), shape.end, shape.parts)

    on_map_literal = on_list_literal

    def on_param_values(self, shape: Shape) -> None:
        self.group(Form.LIST, self.at(shape.start) + 1, shape.end, shape.parts)

    def on_param_range(self, shape: Shape) -> None:
        self.group(Form.PAREN, self.at(shape.start) + 1, shape.end, shape.parts)

    def on_parenthesised(self, shape: Shape) -> None:
        self.group(Form.PAREN, self.at(shape.start), shape.end, shape.parts)

    def on_call(self, shape: Shape) -> None:
        self.called(shape, 0)

    def on_method(self, shape: Shape) -> None:
        self.behind_operand(shape)
        self.called(shape, 1)

    def called(self, shape: Shape, name: int) -> None:
        opener = self.at(shape.parts[name].end)
        self.layout.close_before.add(opener)
        arguments = shape.parts[name + 1].parts if len(shape.parts) > name + 1 else ()  # type: ignore[union-attr]
        self.group(Form.LIST, opener, shape.end, arguments)

    def on_function(self, shape: Shape) -> None:
        opener = self.at(shape.parts[0].end)
        self.layout.close_before.add(opener)
        first = shape.parts[1]
        takes_some = isinstance(first, Shape) and self.at(first.start) == opener + 1
        closing = self.tokens[self.at(first.end) if takes_some else opener + 1]
        self.group(Form.LIST, opener, closing.end, first.parts if isinstance(first, Shape) and takes_some else ())

    def on_type_ref(self, shape: Shape) -> None:
        if len(shape.parts) > 1:
            self.layout.close_before.add(self.at(shape.parts[0].end))

    # --- signs ----------------------------------------------------------------------------------------

    def behind_operand(self, shape: Shape) -> None:
        """The `.` or `[` behind an operand stands close to it."""
        self.layout.close_before.add(self.at(shape.parts[0].end))

    on_select = on_optional_select = on_index = on_optional_index = behind_operand

    def on_dotted_name(self, shape: Shape) -> None:
        first = self.at(shape.start)
        self.layout.close_before.update(range(first + 1, self.at(shape.end)))

    def on_unary(self, shape: Shape) -> None:
        self.layout.close_behind.add(self.at(shape.start))

    def on_conditional(self, shape: Shape) -> None:
        condition, then, _ = shape.parts
        self.layout.spaced |= {self.at(condition.end), self.at(then.end)}
