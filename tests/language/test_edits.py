"""Edits as they are applied; what fixes do to comments and tokens is tried on whole texts in `tests/fuzz/fixes.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.language.diagnostics import Edit, Fix, Source
from policyengine.language.edits import applied, keeping_comments
from policyengine.language.syntax import Span


@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.text(max_size=4)), max_size=4)
)
@settings(max_examples=200)
def test_edits_that_do_not_overlap_are_applied_as_if_one_by_one(text: str, wanted: list[tuple[int, int, str]]) -> None:
    edits, end, expected = [], 0, ""
    for start, length, new in sorted(wanted):
        if start >= end and start + length <= len(text) and (not edits or start > edits[-1].span.start):
            expected += text[end:start] + new
            end = start + length
            edits.append(Edit(Span(start, end), new))
    assert applied(text, edits[::-1]) == expected + text[end:]


INSIDE = """let a = "is {pod.labels['x']}" // lint"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("'x'", '"y"', None),
        ("[", "[?", INSIDE.replace("[", "[?")),
        ('a = "is', 'b = "was', None),
        ("// lint", "", INSIDE.removesuffix(" // lint")),
        ("=", "==", INSIDE.replace("=", "==")),
        (" = ", "5", INSIDE.replace(" = ", " 5")),
    ],
)
def test_a_place_inside_a_string_is_edited_where_nothing_needs_an_escape(
    old: str, new: str, expected: str | None
) -> None:
    start = INSIDE.index(old)
    fix = keeping_comments(Source("p", INSIDE), Fix("", (Edit(Span(start, start + len(old)), new),)))
    assert (applied(INSIDE, fix.edits) if fix else None) == expected
