"""Comments that allow a finding: `// lint: allow PE3012 because every group sets it`.

Behind code the comment is about what begins on its line. On a line of its own it is about what the next line of code
begins: the whole member, require, key, field or step that starts there, or else that line. A reason is required, and
a comment that allows nothing (any more) is a finding itself, so that none outlives its cause.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from policyengine.language import syntax
from policyengine.language.diagnostics import CODES, Diagnostic, Edit, Fix, Severity, Source, listed, pages_of, register
from policyengine.language.parsing.tokens import Token, tokens_of
from policyengine.language.syntax import Span

MALFORMED = "PE3901"
UNUSED = "PE3902"
register(
    pages_of("""\
PE3901 a comment that allows findings, not understood
A finding is allowed by a comment with its code and a reason:
`// lint: allow PE3012 because every group of this cluster sets it`. Several codes are parted by commas.
Without a reason, or with a code that no rule has, the comment allows nothing. Errors (`PE0`, `PE1`,
`PE2`) cannot be allowed.

PE3902 a comment that allows nothing
There is no finding of this code in the place the comment is about: the line it stands on, or, where it
has a line to itself, what begins on the next line of code. `--fix` removes it.
""")
)
_COMMENT = re.compile(r"(?://|#)\s*lint\s*:\s*(.*)", re.DOTALL)
_ALLOW = re.compile(r"allow\s+(PE\d{4}(?:\s*,\s*PE\d{4})*)\s+because\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_MARK = re.compile(r"lint\s*:")
_MOST = 100
"""Findings about comments of one file."""


class Suppression(Struct, frozen=True):
    """A comment with codes; `about` are the starts of what it is about."""

    codes: tuple[str, ...]
    span: Span
    about: Span


def allowed(source: Source, file: syntax.File, found: Sequence[Diagnostic], ignored: Iterable[str]) -> list[Diagnostic]:
    """The findings that no comment allows, and those about the comments themselves.

    Arguments:
        found: opinions only, whose file is `source`.
        ignored: codes that are switched off: comments about these are not called unused.
    """
    if _MARK.search(source.text) is None:
        return list(found)
    comments, wrong = _read(source, file)
    used: set[tuple[Span, str]] = set()
    left = list(_not_allowed(found, comments, used))
    unused = (
        _unused(source, comment, [code for code in comment.codes if (comment.about, code) not in used])
        for comment in comments
        if any((comment.about, code) not in used and code not in ignored for code in comment.codes)
    )
    return [*left, *wrong[:_MOST], *islice(unused, _MOST)]


def _not_allowed(
    found: Sequence[Diagnostic], comments: Iterable[Suppression], used: set[tuple[Span, str]]
) -> Iterator[Diagnostic]:
    """The findings about which there is no comment. `used` takes up what comments are about, with the code allowed.

    One sweep over the text, as there may be many of both: `around` are the places that hold the finding.
    """
    codes: dict[Span, set[str]] = {}
    for comment in comments:
        codes.setdefault(comment.about, set()).update(comment.codes)
    ahead = sorted(codes, key=lambda place: place.start, reverse=True)
    around: list[Span] = []
    for finding in sorted(found, key=lambda one: one.span.start):
        at = finding.span.start
        while ahead and ahead[-1].start <= at:
            around.append(ahead.pop())
        around = [place for place in around if at < place.end]
        allowing = [(place, finding.code) for place in around if finding.code in codes[place]]
        used.update(allowing)
        if not allowing:
            yield finding


def _read(source: Source, file: syntax.File) -> tuple[list[Suppression], list[Diagnostic]]:
    cut = tokens_of(source)
    comments: list[Suppression] = []
    wrong: list[Diagnostic] = []
    begins = {span.start: span for span in reversed(list(_units(file)))}
    starts = [token.start for token in cut.tokens]
    for comment in cut.comments:
        found = _COMMENT.match(comment.text)
        if found is None:
            continue
        codes, problem = _codes(found[1])
        if problem:
            wrong.append(Diagnostic(MALFORMED, Severity.WARNING, problem, source.file, comment.span))
        else:
            following = cut.tokens[min(bisect_right(starts, comment.start), len(starts) - 1)]
            comments.append(Suppression(codes, comment.span, _about(source, following, comment, begins)))
    return comments, wrong


def _codes(text: str) -> tuple[tuple[str, ...], str]:
    """The codes of a comment, or what is wrong with it."""
    found = _ALLOW.fullmatch(text.strip())
    if found is None:
        if re.match(r"allow\s+PE\d{4}", text.strip(), re.IGNORECASE):
            return (), "the comment gives no reason: `lint: allow PE3001 because …`"
        return (), "the comment is written `lint: allow PE3001 because …`"
    codes = tuple(code.strip().upper() for code in found[1].split(","))
    for code in codes:
        if not code.startswith("PE3"):
            return (), f"`{code}` is an error and cannot be allowed"
        if code not in CODES:
            return (), f"no rule has the code `{code}`"
    return codes, ""


def _about(source: Source, following: Token, comment: Token, begins: dict[int, Span]) -> Span:
    line, column = source.line_column(comment.start)
    start = source.line_start(line)
    if source.text[start : start + column - 1].strip():
        return Span(start, comment.start)
    if following.start in begins:
        return begins[following.start]
    first = source.line_column(following.start)[0]
    end = source.line_start(first + 1) if first < source.line_count else len(source.text)
    return Span(following.start, end)


def _units(file: syntax.File) -> Iterator[Span]:
    """What a comment can be about as a whole, outer ones first."""
    blocks: tuple[syntax.Block, ...]
    blocks = (*file.libraries, *file.policies, *file.overlays)
    for block in blocks:
        yield block.span
        for member in block.members:
            yield member.span
            for name in ("requires", "order", "steps"):
                yield from (part.span for part in getattr(member, name, ()))


def _unused(source: Source, comment: Suppression, codes: Sequence[str]) -> Diagnostic:
    message = f"there is no finding {listed(codes)} here that the comment could allow"
    fix = None
    if len(codes) == len(comment.codes):
        fix = Fix("remove the comment", (Edit(comment.span, ""),), safe=True)
    return Diagnostic(UNUSED, Severity.WARNING, message, source.file, comment.span, fix)
