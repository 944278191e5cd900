"""Edits of a text that keep its comments and its other tokens.

A fix says what is written in the place of what. `keeping_comments` makes edits of it that may be applied as they are:

- a comment within a place stays where it is; what stands around it is replaced;
- neighbours that would become one token, or a comment, are parted by a space;
- a line on which nothing is left is taken out with its line break;
- a place inside a string is edited only where nothing needs an escape.

For example, the second item of `["a", // one` ⏎ `"a", "b"]` is taken out by replacing `, // one` ⏎ `"a"` with nothing.
Two edits do that: one takes out the comma, the other the item; the comment between them stays.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from policyengine.language.diagnostics import Edit, Fix, Source
from policyengine.language.parsing.tokens import Token, Tokens, tokenise, tokens_of
from policyengine.language.syntax import Span

_NEEDS_CARE = re.compile(r"""["'\\{}\r\n#]|//""")
"""What means something else inside a string, or begins a comment there."""


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda one: (one.span.start, one.span.end), reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def keeping_comments(source: Source, fix: Fix | None) -> Fix | None:
    """The fix with edits that keep comments and other tokens; None where there is none."""
    if fix is None:
        return None
    cut, edits = tokens_of(source), list[Edit]()
    for edit in fix.edits:
        first, last = _token_around(cut, edit.span.start), _token_around(cut, edit.span.end)
        if first is last is None:
            edits += (_apart(source, cut, part) for part in _between_comments(source, cut, edit))
        elif first is last and not _NEEDS_CARE.search(source.slice(edit.span) + edit.text):
            edits.append(edit)
        else:
            return None
    return replace(fix, edits=tuple(edits))


def _token_around(cut: Tokens, offset: int) -> Token | None:
    """The token inside of which an offset is."""
    at = bisect_left(cut.tokens, offset, key=lambda token: token.start) - 1
    return cut.tokens[at] if at >= 0 and cut.tokens[at].end > offset else None


def _between_comments(source: Source, cut: Tokens, edit: Edit) -> Iterator[Edit]:
    """The edit in parts without a comment; the first writes the text. One of a comment alone is whole."""
    start, end = edit.span.start, edit.span.end
    first = bisect_left(cut.comments, start, key=lambda token: token.start)
    inside = cut.comments[first : bisect_left(cut.comments, end, key=lambda token: token.start)]
    token = bisect_left(cut.tokens, start, key=lambda token: token.start)
    if not inside or cut.tokens[token].start >= end:
        yield edit
        return
    text = edit.text.strip()
    for begin, stop in zip((start, *(one.end for one in inside)), (*(one.start for one in inside), end), strict=True):
        part = source.text[begin:stop]
        if part.strip():
            begin += len(part) - len(part.lstrip())
            yield Edit(Span(begin, begin + len(part.strip())), text)
            text = ""


def _apart(source: Source, cut: Tokens, edit: Edit) -> Edit:
    """The edit with a space where tokens would run together, and with the line of which it leaves nothing."""
    span, text = edit.span, edit.text
    at = bisect_left(cut.tokens, span.start, key=lambda token: token.start)
    before = cut.tokens[at - 1] if at and cut.tokens[at - 1].end == span.start else None
    at = bisect_left(cut.tokens, span.end, key=lambda token: token.start)
    behind = cut.tokens[at] if cut.tokens[at].start == span.end else None
    left = source.slice(before.span) if before else ""
    right = source.slice(behind.span) if behind else ""
    if not text:
        return Edit(span, " ") if _run_together(left, right) else Edit(_whole_line(source.text, span), "")
    space, other = " " * _run_together(left, text), " " * _run_together(text, right)
    return Edit(span, f"{space}{text}{other}")


def _run_together(before: str, behind: str) -> bool:
    """Whether two texts are read otherwise side by side than apart."""
    if not before or not behind:
        return False
    apart, close = tokenise(f"{before} {behind}", ""), tokenise(f"{before}{behind}", "")
    return [one.text for one in apart.tokens] != [one.text for one in close.tokens] or bool(close.comments)


def _whole_line(text: str, span: Span) -> Span:
    """What is taken out, with its lines where nothing else stands on them, else with blanks beside it."""
    start, end = span.start, span.end
    while start and text[start - 1] in " \t":
        start -= 1
    while end < len(text) and text[end] in " \t\r":
        end += 1
    begins, ends = not start or text[start - 1] == "\n", end == len(text) or text[end] == "\n"
    if ends:
        return Span(start, min(end + 1, len(text))) if begins else Span(start, span.end)
    return Span(span.start, end) if begins or start < span.start else span
