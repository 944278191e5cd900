"""Strings in which `{expr}` is filled in: `else`, `log` and annotation strings."""

from __future__ import annotations

import re
from typing import NamedTuple

from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parsing.literal_values import LiteralError, Text, decode_text
from policyengine.language.parsing.member_parser import parse_cut
from policyengine.language.parsing.tokens import relocated, tokenise
from policyengine.language.syntax import Expr, Span, Template
from policyengine.language.syntax_codes import syntax_error


def parse_template(literal: str, start: int, file: str) -> tuple[Template, list[Diagnostic]]:
    """The template a string literal stands for, and what is wrong with it.

    Arguments:
        literal: as it is written, quotes included; it begins at offset `start` of the file.
    """
    span = Span(start, start + len(literal))
    try:
        text = decode_text(literal)
    except LiteralError as error:
        place = Span(start + error.start, start + error.end)
        return Template(span=span, parts=()), [syntax_error("PE0204", str(error), file, place)]
    try:
        pieces = template_parts(text.value)
    except LiteralError as error:
        place = Span(start + text.offsets[error.start], start + text.offsets[error.end])
        return Template(span=span, parts=()), [syntax_error("PE0206", str(error), file, place)]
    parts: list[str | Expr] = []
    findings: list[Diagnostic] = []
    for piece in pieces:
        if isinstance(piece, str):
            parts.append(piece)
        else:
            found, wrong = _filled_in(text, piece, start, file)
            findings += wrong
            parts += [found] if found is not None else []
    return Template(span=span, parts=tuple(parts)), findings


def _filled_in(text: Text, hole: Hole, start: int, file: str) -> tuple[Expr | None, list[Diagnostic]]:
    cut = tokenise(text.value, file, hole.start, hole.end)
    return parse_cut(relocated(cut, [start + offset for offset in text.offsets]), file)


# --- the pieces of a text -------------------------------------------------------------------------


class Hole(NamedTuple):
    """`{expr}` in a template: the expression's text, and its offsets in the value."""

    start: int
    end: int


def template_parts(value: str) -> list[str | Hole]:
    """The pieces of a template: text, with `{{` and `}}` as braces, and holes.

    A `}` inside a string of the expression, or closing a map in it, does not end the hole.

    Raises:
        LiteralError: a brace that fits nothing; offsets are those in the value.
    """
    parts: list[str | Hole] = []
    text, at = "", 0
    while at < len(value):
        character = value[at]
        if character in "{}" and value.startswith(character * 2, at):
            text, at = text + character, at + 2
        elif character == "}":
            raise LiteralError("`}` closes nothing here; a brace that is meant itself is `}}`", at, at + 1)
        elif character == "{":
            end = _hole_end(value, at)
            parts += [text] if text else []
            parts.append(Hole(at + 1, end))
            text, at = "", end + 1
        else:
            stop = _next_brace(value, at)
            text, at = text + value[at:stop], stop
    return [*parts, text] if text else parts


def _next_brace(value: str, at: int) -> int:
    found = [place for place in (value.find("{", at), value.find("}", at)) if place >= 0]
    return min(found, default=len(value))


_IN_HOLE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]")


def _hole_end(value: str, start: int) -> int:
    depth = 0
    for found in _IN_HOLE.finditer(value, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            if not value[start + 1 : found.start()].strip():
                raise LiteralError("`{}` has no expression to fill in", start, found.end())
            return found.start()
    raise LiteralError("`{` has no closing `}`; a brace that is meant itself is `{{`", start, start + 1)
