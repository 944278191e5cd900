"""A policy's text in pieces that a page colours, by the grammar's own tokens."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from policyengine.language.diagnostics import Source
from policyengine.language.parsing import grammar
from policyengine.language.parsing.tokens import tokens_of

_CLASSES = {
    "COMMENT": "comment",
    **dict.fromkeys(("STRING", "BYTES"), "string"),
    **dict.fromkeys(("INT", "UINT", "FLOAT", "QUANTITY", "DURATION"), "number"),
}


class Piece(NamedTuple):
    """Part of a line. `kind`: keyword, string, number, comment, or empty."""

    kind: str
    text: str


def highlighted(source: Source) -> list[list[Piece]]:
    """The lines of a text. What the tokens do not cover is plain."""
    cut = tokens_of(source)
    lines: list[list[Piece]] = [[]]
    at = 0
    for token in sorted([*cut.tokens, *cut.comments], key=lambda one: one.start):
        if token.start >= at:
            _put(lines, "", source.text[at : token.start])
            _put(lines, _kind(token.kind), source.text[token.start : token.end])
            at = token.end
    _put(lines, "", source.text[at:])
    return lines


def _put(lines: list[list[Piece]], kind: str, text: str) -> None:
    for number, line in enumerate(text.split("\n")):
        if number:
            lines.append([])
        if line:
            lines[-1].append(Piece(kind, line))


def _kind(terminal: str) -> str:
    return _CLASSES.get(terminal, "keyword" if terminal in _words() else "")


@cache
def _words() -> frozenset[str]:
    return frozenset(grammar.word_terminals().values())
