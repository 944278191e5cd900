"""Long lists, a part at a time, in the order that the query asks for. Without JavaScript, as links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from policyengine.server.pages.source import Asked

T = TypeVar("T")
SHOWN: Final = 100
"""Rows at once."""


def part(rows: Sequence[T], asked: Asked, keys: Mapping[str, Callable[[T], Any]]) -> dict[str, Any]:
    """`{rows, page, pages, count}`: the part `page` of the rows, sorted by the key that `sort` names; with `-` before
    it the other way round. In the order given where it names none."""
    by = asked.query.get("sort", "")
    key = keys.get(by.removeprefix("-"))
    if key is not None:
        rows = sorted(rows, key=key, reverse=by.startswith("-"))
    pages = max(1, -(-len(rows) // SHOWN))
    text = asked.query.get("page", "1")
    page = min(pages, max(1, int(text[:9]))) if text.isdecimal() and text.isascii() else 1
    return {"rows": rows[(page - 1) * SHOWN : page * SHOWN], "page": page, "pages": pages, "count": len(rows)}
