"""A plan on a terminal, as Markdown for a review, and as one HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from policyengine.commands.reports.html_page import document, figures, table, text_of
from policyengine.commands.reports.plan_picture import pictures
from policyengine.control_characters import escaped
from policyengine.plan.tables import head, tables

if TYPE_CHECKING:
    from policyengine.plan.comparison import Plan


ROWS: Final = 100
"""Pods of one kind that are shown; behind a click where they are more than a few."""
_CALLS: Final = re.compile(r"[@#]|:(?=//)|www(?=\.)", re.IGNORECASE)
"""What hosts of reviews make mentions, references and links of; they do not where a comment stands behind it."""
HEADLINE: Final = ("waiting", "wait p99", "evictions", "utilisation cpu", "fragmentation cpu")
"""Figures that are shown large."""


def page(plan: Plan) -> str:
    """The whole document. Every name in it is escaped."""
    return document(f"plan: {plan.new}", _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield "<h1>What another policy would do</h1>"
    yield f'<p class="key of-old">old: {text_of(plan.old)}</p><p class="key">new: {text_of(plan.new)}</p>'
    yield from (f'<p class="note">{text_of(line)}</p>' for line in list(head(plan))[2:])
    shown = list(tables(plan, ROWS))
    yield from _tiles(next(rows for title, _, rows in shown if title == "Figures"))
    if plan.runs is not None:
        yield from figures(pictures(*plan.runs))
    for title, headers, rows in shown:
        yield from table(title, headers, rows)


def _tiles(figures: Sequence[Sequence[str]]) -> Iterator[str]:
    """The figures that matter most, old and new."""
    yield '<div class="tiles">'
    for name, old, new, verdict in figures:
        if name in HEADLINE:
            told = text_of(new) if old == new else f"{text_of(old)} → {text_of(new)}"
            yield f'<div class="tile"><span>{text_of(name)}</span><b class="{verdict}">{told}</b>{verdict}</div>'
    yield "</div>"


def written(plan: Plan) -> str:
    """The same as Markdown."""
    lines = ["### policyengine plan", "", *(f"{_markdown(line)}  " for line in head(plan))]
    for title, headers, rows in tables(plan):
        lines += ["", f"**{title}**", "", f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
        lines += [f"| {' | '.join(map(_markdown, row))} |" for row in rows]
    return "\n".join(lines)


def _markdown(text: str) -> str:
    """A name makes no column, link, picture, element or comment of its own, and calls nobody."""
    alone = _CALLS.sub(r"\g<0><!-- -->", escape(escaped(text), quote=False))
    return alone.replace("|", "&#124;").replace("[", "&#91;")
