"""Finding one's way in a syntax tree: the blocks, members and expressions around an offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from policyengine.language import syntax
from policyengine.language.checking.macros import is_macro
from policyengine.language.syntax import Span
from policyengine.language.syntax.expression_nodes import children

Block = syntax.Policy | syntax.Library | syntax.Overlay
PlainMaps = syntax.Use | syntax.Quota | syntax.GivenNode | syntax.GivenPod
"""What has maps of plain data, in which a bare key is a string."""
_EXPRESSIONS: tuple[type, ...] = get_args(syntax.Expr)


def blocks_of(file: syntax.File) -> tuple[Block, ...]:
    """The blocks of a file, in the order they are written."""
    found: list[Block] = [*file.libraries, *file.policies, *file.overlays]
    return tuple(sorted(found, key=lambda block: block.span.start))


def holds(span: Span, offset: int) -> bool:
    """Whether a cursor is at the place, its end included."""
    return span.start <= offset <= span.end


def member_at(file: syntax.File, offset: int) -> tuple[Block | None, syntax.Member | None]:
    """The block and the member of it around an offset."""
    block = next((block for block in blocks_of(file) if holds(block.span, offset)), None)
    if block is None:
        return None, next((one for one in file.imports if holds(one.span, offset)), None)
    return block, next((member for member in block.members if holds(member.span, offset)), None)


def expressions_in(part: object) -> Iterator[syntax.Expr]:
    """The expressions of a member or a part of one, those filled into texts too; of maps of plain data, the values."""
    if isinstance(part, _EXPRESSIONS):
        yield part  # type: ignore[misc]
    elif isinstance(part, tuple):
        for inner in part:
            yield from expressions_in(inner)
    elif isinstance(part, Block):
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
