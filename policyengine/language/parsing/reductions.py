"""What becomes of the parts of each rule of the grammar.

A rule's parts are what its symbols stand for, without the keywords and signs that say nothing more, and with None for
what is left out of `[…]`. A rule `_x` gives its parts to the rule around it, and `?x` of a single part is that part. A
rule `optional_x` is a rule `x` whose node is optional.

For example `require: "require" expr ["else" template] [on_error]` has three parts: the condition, None or a template,
and None or an expression.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct


class Reduction(Struct, frozen=True, gc=False):
    """A rule of the grammar, applied to its symbols."""

    rule: str
    """The name by which the actions know it."""
    parts: tuple[tuple[int, bool], ...] | None
    """The symbols that are parts, by their places, and whether a symbol stands for several; -1: None is the part.
    None: all symbols are."""
    is_optional: bool
    is_passed: bool
    """Whether a single part stands for it."""
    is_inlined: bool


@cache
def reduction_of(rule: Any) -> Reduction:
    """What we know of a rule of Lark's.

    Its `empty_indices` has True for each part that is left out, between those that are there.
    """
    parts: list[tuple[int, bool]] = []
    symbols = iter(enumerate(rule.expansion))
    for is_left_out in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_left_out:
            parts.append((-1, False))
            continue
        place, symbol = next(symbols)
        if not (symbol.is_term and symbol.filter_out):
            parts.append((place, not symbol.is_term and symbol.name.startswith("_")))
    name = rule.alias or rule.origin.name
    return Reduction(
        rule=name.removeprefix("optional_"),
        parts=None if parts == [(place, False) for place in range(len(rule.expansion))] else tuple(parts),
        is_optional=name.startswith("optional_"),
        is_passed=rule.options.expand1 and not rule.alias,
        is_inlined=rule.origin.name.startswith("_"),
    )
