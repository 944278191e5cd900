"""Strings in which `{expr}` is filled in: `else`, `log` and annotation strings."""

from __future__ import annotations

from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parse_expression import parse_cut
from policyengine.language.parsing.literal_values import Hole, LiteralError, Text, decode_text, template_parts
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
