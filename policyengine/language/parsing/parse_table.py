"""The LALR(1) table that Lark makes of the grammar, with what becomes of the parts of each rule.

A rule's parts are what its symbols stand for, without the keywords and signs that say nothing more, and with None for
what is left out of `[…]`. A rule `_x` gives its parts to the rule around it, and `?x` of a single part is that part. A
rule `optional_x` is a rule `x` whose node is optional.

For example `require: "require" expr ["else" template] [on_error]` has three parts: the condition, None or a template,
and None or an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from policyengine.language.parsing.grammar import STARTS, parser

END = "$END"


class Reduction(Struct, frozen=True, gc=False):
    """A rule of the grammar, applied to its symbols."""

    symbol: str
    """What the rule is a form of: the table says where it leads."""
    rule: str
    """The name by which the actions know it."""
    size: int
    """How many symbols it has."""
    parts: tuple[tuple[int, bool], ...] | None
    """The symbols that are parts, by their places, and whether a symbol stands for several; -1: None is the part.
    None: all symbols are."""
    is_optional: bool
    is_passed: bool
    """Whether a single part stands for it."""
    is_inlined: bool


class ParseTable(Struct, frozen=True):
    """An LR parser's two tables, by the numbers of states, and the states a start rule begins and ends in."""

    actions: Mapping[int, Mapping[str, int | Reduction]]
    """What a terminal does: it leads to a state, or the rule before it is complete."""
    goto: Mapping[int, Mapping[str, int]]
    """Where a rule leads that is complete."""
    first: Mapping[str, int]
    last: Mapping[str, int]


@cache
def parse_table() -> ParseTable:
    """The table of `grammar/policy.lark`."""
    found = parser().parse_interactive("", STARTS[0]).parser_state.parse_conf.parse_table
    actions: dict[int, dict[str, int | Reduction]] = {}
    goto: dict[int, dict[str, int]] = {}
    reductions: dict[int, Reduction] = {}
    for number, state in found.states.items():
        actions[number], goto[number] = {}, {}
        for symbol, (_, what) in state.items():
            if not symbol.isupper():
                goto[number][symbol] = what
            elif isinstance(what, int):
                actions[number][symbol] = what
            else:
                known = reductions.get(id(what))
                actions[number][symbol] = reductions.setdefault(id(what), known or _reduction(what))
    return ParseTable(actions, goto, found.start_states, found.end_states)


def _reduction(rule: Any) -> Reduction:
    """Lark's rule: `empty_indices` has True for each part that is left out, between those that are there."""
    parts: list[tuple[int, bool]] = []
    symbols = iter(enumerate(rule.expansion))
    for is_left_out in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_left_out:
            parts.append((-1, False))
            continue
        place, symbol = next(symbols)
        if not (symbol.is_term and symbol.filter_out):
            parts.append((place, not symbol.is_term and symbol.name.startswith("_")))
    size, symbol, name = len(rule.expansion), rule.origin.name, rule.alias or rule.origin.name
    return Reduction(
        symbol=symbol,
        rule=name.removeprefix("optional_"),
        size=size,
        parts=None if parts == [(place, False) for place in range(size)] else tuple(parts),
        is_optional=name.startswith("optional_"),
        is_passed=rule.options.expand1 and not rule.alias,
        is_inlined=symbol.startswith("_"),
    )
