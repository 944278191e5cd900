"""The values of literals: strings and bytes with their escapes."""

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
    """A literal that stands for nothing: a sentence, and the part that is meant, as offsets in the literal."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


class Text(NamedTuple):
    """The value of a string literal, and for each of its characters the offset in the literal, and the end's."""

    value: str
    offsets: list[int]


def decode_string(literal: str) -> str:
    """The value of a string literal as it is written, prefix and quotes included.

    Raises:
        LiteralError: an escape CEL does not have, or a code point that is none.
    """
    if "\\" not in literal and "\r" not in literal:
        start, end, _ = _inside(literal)
        return literal[start:end]
    return decode_text(literal).value


def decode_bytes(literal: str) -> bytes:
    """The value of a bytes literal: characters as UTF-8, `\\x` and octal escapes as single bytes.

    Raises:
        LiteralError: an escape CEL does not have; `\\u` has no meaning among bytes.
    """
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
