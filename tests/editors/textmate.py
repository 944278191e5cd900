"""As much of a TextMate tokeniser as the grammar needs: `match`, `begin`/`end` with inner patterns, `include`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent.parent.parent / "editors/vscode/syntaxes/policy.tmLanguage.json"


class Scoped(NamedTuple):
    """A part of the text and its innermost scope."""

    start: int
    end: int
    scope: str


class Grammar:
    """The grammar of the extension; its patterns mean the same to Python as to Oniguruma."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
        self.top = list(self._flat(self.data["patterns"]))

    def _flat(self, patterns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for pattern in patterns:
            if "include" in pattern:
                found = self.data["repository"][pattern["include"].removeprefix("#")]
                yield from self._flat(found["patterns"] if "match" not in found else [found])
            else:
                yield pattern

    def scopes(self, text: str) -> list[Scoped]:
        """The scopes of a text, line by line as editors do, in order of their starts."""
        found: list[Scoped] = []
        open_: tuple[dict[str, Any], int] | None = None
        at = 0
        for line in text.splitlines(keepends=True):
            open_ = self._line(line.rstrip("\r\n"), at, open_, found)
            at += len(line)
        return sorted(found)

    def _line(
        self, line: str, base: int, open_: tuple[dict[str, Any], int] | None, found: list[Scoped]
    ) -> tuple[dict[str, Any], int] | None:
        at = 0
        while at <= len(line):
            if open_ is not None:
                end = self._end(line, at, open_[0])
                if end is None:
                    return open_
                found.append(Scoped(open_[1], base + end, open_[0]["name"]))
                at, open_ = end, None
                continue
            first = self._first(line, at)
            if first is None:
                return None
            pattern, match = first
            if "begin" in pattern:
                open_ = (pattern, base + match.start())
            else:
                found.extend(_named(pattern, match, base))
            at = max(match.end(), at + (match.end() == match.start()))
        return open_

    def _first(self, line: str, at: int) -> tuple[dict[str, Any], re.Match[str]] | None:
        tried = ((pattern, compiled(pattern.get("match") or pattern["begin"]).search(line, at)) for pattern in self.top)
        matched = [(match.start(), pattern, match) for pattern, match in tried if match is not None]
        return min(matched, key=lambda one: one[0])[1:] if matched else None

    def _end(self, line: str, at: int, pattern: dict[str, Any]) -> int | None:
        """Where the pattern ends on the line, the inner ones passed over."""
        while True:
            end = compiled(pattern["end"]).search(line, at)
            inner = [compiled(one["match"]).search(line, at) for one in self._flat(pattern["patterns"])]
            first = min((one for one in inner if one), key=lambda one: one.start(), default=None)
            if first is not None and (end is None or first.start() < end.start()):
                at = first.end()
                continue
            return end.end() if end is not None else None


def _named(pattern: dict[str, Any], match: re.Match[str], base: int) -> Iterator[Scoped]:
    if "name" in pattern:
        yield Scoped(base + match.start(), base + match.end(), pattern["name"])
    for group, capture in pattern.get("captures", {}).items():
        if match.group(int(group)) is not None:
            yield Scoped(base + match.start(int(group)), base + match.end(int(group)), capture["name"])


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern; `re` keeps what it compiled."""
    return re.compile(pattern)
