"""The values of literals: strings and bytes with their escapes, and strings in which `{expr}` is filled in."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_STRING = 10_000
"""Characters of a string literal, quotes included."""
MAX_WORD = 250
"""Characters of a name or a number."""
MAX_INT = 2**63
"""The largest integer literal: it makes sense behind a `-` only."""

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|[\s\S])")
_LINE_END = re.compile(r"\r\n?")


class LiteralError(ValueError):
    """A literal that stands for nothing: a sentence, its code, and the part meant, as offsets in the literal."""

    def __init__(self, message: str, start: int, end: int, code: str = "PE0204") -> None:
        super().__init__(message)
        self.start, self.end, self.code = start, end, code


class Text(NamedTuple):
    """The value of a string literal, and for each of its characters the offset in the literal, and the end's."""

    value: str
    offsets: list[int]


def decode_string(literal: str) -> str:
    """The value of a string literal as it is written, prefix and quotes included. Raises LiteralError: an escape CEL
    does not have, or a code point that is none."""
    return decode_text(literal).value


def decode_bytes(literal: str) -> bytes:
    """The value of a bytes literal: characters as UTF-8, `\\x` and octal escapes as single bytes. Raises LiteralError:
    an escape CEL does not have; `\\u` has no meaning among bytes."""
    start, end, raw = _inside(literal[1:])
    body, found, at = literal[1 + start : 1 + end], b"", 0
    for escape in () if raw else _ESCAPE.finditer(body):
        found += body[at : escape.start()].encode("utf-8", "surrogatepass")
        at = escape.end()
        character = _escaped(escape[0], 1 + start + escape.start())
        if escape[0][1] in "uU":
            raise LiteralError(f"`{escape[0]}` has no meaning in bytes", start + 1 + escape.start(), start + 1 + at)
        found += character.encode("latin-1")
    return found + body[at:].encode("utf-8", "surrogatepass")


def decode_text(literal: str) -> Text:
    """As `decode_string`, with the place in the literal each character of the value comes from."""
    start, end, raw = _inside(literal)
    if "\\" not in literal and "\r" not in literal:
        return Text(literal[start:end], list(range(start, end + 1)))
    characters: list[str] = []
    offsets: list[int] = []
    at = start
    while at < end:
        step, shown = at + 1, literal[at]
        if shown == "\r":
            step, shown = at + (2 if literal.startswith("\r\n", at) else 1), "\n"
        elif shown == "\\" and not raw:
            escape = _ESCAPE.match(literal, at, end)
            assert escape is not None  # the token's pattern sees to it that something follows
            step, shown = escape.end(), _escaped(escape[0], at)
        characters.append(shown)
        offsets.append(at)
        at = step
    return Text("".join(characters), [*offsets, end])


def _inside(literal: str) -> tuple[int, int, bool]:
    """Where a literal's text begins and ends, and whether it is raw."""
    raw = literal[0] in "rR"
    start = 1 if raw else 0
    width = 3 if len(literal) >= start + 6 and literal[start : start + 3] in ('"""', "'''") else 1
    return start + width, len(literal) - width, raw


def _escaped(escape: str, at: int) -> str:
    letter = escape[1]
    if len(escape) == 2 and letter in _SIMPLE:
        return _SIMPLE[letter]
    if len(escape) > 2:
        code = int(escape[2:], 16) if letter in _DIGITS else int(escape[1:], 8)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise LiteralError(f"`{escape}` is no character", at, at + len(escape))
        return chr(code)
    raise LiteralError(_advice(letter), at, at + 2)


def _advice(letter: str) -> str:
    if letter in _DIGITS:
        return f"`\\{letter}` takes {_DIGITS[letter]} hexadecimal digits"
    if letter.isdigit():
        return "an octal escape has three digits, from `\\000` to `\\377`"
    shown = f"`\\{letter}` is" if letter.isprintable() else "a backslash before this character makes"
    return f'{shown} no escape; for a backslash write `\\\\`, for a pattern use a raw string, `r"…"`'


# --- the pieces of a string in which something is filled in ---------------------------------------------


class Hole(NamedTuple):
    """`{expr}` in a template: the offsets of the expression's text in the value."""

    start: int
    end: int


def template_parts(text: Text) -> list[str | Hole]:
    """The pieces of a template: text, with `{{` and `}}` as braces, and holes.

    A `}` inside a string of the expression, or closing a map in it, does not end the hole. For example `a {x} {{b}}`
    is made of `a `, a hole from 3 to 4, and ` {b}`.

    Raises LiteralError: a brace that fits nothing.
    """
    value = text.value
    parts: list[str | Hole] = []
    piece, at = "", 0
    while brace := _BRACE.search(value, at):
        piece += value[at : brace.start()]
        at = brace.end()
        if len(brace[0]) == 2:
            piece += brace[0][0]
        elif brace[0] == "}":
            raise _misfit("`}` closes nothing here; a brace that is meant itself is `}}`", text, at - 1, at)
        else:
            end = _hole_end(text, at - 1)
            parts += [piece] if piece else []
            parts.append(Hole(at, end))
            piece, at = "", end + 1
    piece += value[at:]
    return [*parts, piece] if piece else parts


_BRACE = re.compile(r"\{\{|\}\}|[{}]")
_IN_HOLE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]")


def _hole_end(text: Text, start: int) -> int:
    depth = 0
    for found in _IN_HOLE.finditer(text.value, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            if not text.value[start + 1 : found.start()].strip():
                raise _misfit("`{}` has no expression to fill in", text, start, found.end())
            return found.start()
    raise _misfit("`{` has no closing `}`; a brace that is meant itself is `{{`", text, start, start + 1)


def _misfit(message: str, text: Text, start: int, end: int) -> LiteralError:
    return LiteralError(message, text.offsets[start], text.offsets[end], "PE0206")
